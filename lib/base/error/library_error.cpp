#include "base/error/library_error.h"

#include <new>
#include <system_error>

#include <fmt/format.h>

namespace fleetrun {
namespace {

// std::thread throws it, Gloo's too.
bool is_refused_thread(const std::exception& exception) {
  const auto* const problem = dynamic_cast<const std::system_error*>(&exception);
  return problem != nullptr && problem->code() == std::errc::resource_unavailable_try_again;
}

}  // namespace

Error error_of_library(const std::exception& exception) {
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr)
    return {ErrorKind::os, "memory ran out", "ulimit -v shows a limit"};
  if (is_refused_thread(exception))
    return {ErrorKind::os, fmt::format("starting a thread: {}", exception.what()),
            "ulimit -u, pids.max of the cgroup, or ulimit -v limits the threads"};
  return {ErrorKind::internal, fmt::format("internal error: {}", exception.what())};
}

}  // namespace fleetrun
