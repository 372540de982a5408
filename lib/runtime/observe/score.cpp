#include "runtime/observe/score.h"

#include "base/error/error.h"
#include "base/text/plural.h"

namespace fleetrun::runtime {

void require_samples(const Score& score, int size) {
  if (score.samples == 0)
    throw Error(ErrorKind::data,
                "nothing to evaluate: none of the " + plural(size, "sample") + " of data.test can be used");
}

}  // namespace fleetrun::runtime
