#include "launch/logs/control_address.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "launch/logs/log_names.h"

namespace fleetrun::launch {

UniqueFd open_control_folder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

sockaddr_un address_in(const UniqueFd& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), kControlName);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// EAGAIN: a run that is stopped takes no more connections, and would keep us waiting.
bool is_answered(const std::string& folder) {
  const UniqueFd opened = open_control_folder(folder);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_in(opened);
  return opened && socket &&
         (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
          errno == EAGAIN);
}

}  // namespace fleetrun::launch
