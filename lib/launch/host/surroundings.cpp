#include "launch/host/surroundings.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

constexpr mode_t kOwner = 0700;

}  // namespace

void check_current_folder() {
  std::error_code problem;
  const std::filesystem::path current = std::filesystem::current_path(problem);
  if (!problem && !current.empty()) return;
  throw Error(ErrorKind::missing,
              fmt::format("the current folder cannot be used: {}", describe_errno(problem.value())),
              "it was removed or belongs to somebody else; start from another one");
}

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
