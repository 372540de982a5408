#include "runtime/kernels/cpu/labels.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime::cpu {

void Labels::check(const std::int32_t* labels) const {
  const std::int32_t* bad =
      std::find_if(labels, labels + rows, [this](std::int32_t label) { return label >= classes; });
  if (bad != labels + rows)
    throw Error(ErrorKind::data, fmt::format("{}: sample {} of the batch has label {}, there are {} classes",
                                             op, bad - labels, *bad, classes));
}

}  // namespace fleetrun::runtime::cpu
