#include "launch/host/surroundings.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

constexpr mode_t kOwner = 0700;

}  // namespace

void check_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if ((mask & kOwner) != 0)
    throw Error(
        ErrorKind::config,
        fmt::format("the umask is {:04o}: it keeps us from reading and writing the files that we create",
                    static_cast<unsigned>(mask)),
        "wanted is one like 0022 or 0077");
}

}  // namespace fleetrun::launch
