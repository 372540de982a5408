#include "base/system/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun {

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorKind::os, fmt::format("making a pipe: {}", describe_errno(errno)));
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace fleetrun
