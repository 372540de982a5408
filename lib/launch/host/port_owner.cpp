#include "launch/host/port_owner.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "base/text/printable.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestOwner = 80;

bool holds(const std::filesystem::path& process, const std::string& socket) {
  std::error_code problem;
  for (const auto& fd : std::filesystem::directory_iterator(process / "fd", problem)) {
    std::error_code gone;
    if (std::filesystem::read_symlink(fd.path(), gone) == socket) return true;
  }
  return false;
}

std::string command_of(const std::filesystem::path& process) {
  std::string command = read_kernel_file(process / "cmdline");
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  return printable_start(command, kLongestOwner);
}

}  // namespace

std::string describe_port_owner(std::uint16_t port) {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string inode = find_socket_inode(read_kernel_file(table), port);
    if (inode.empty()) continue;
    std::error_code problem;
    for (const auto& process : std::filesystem::directory_iterator("/proc", problem)) {
      const int pid = std::atoi(process.path().filename().c_str());
      if (pid > 0 && holds(process.path(), fmt::format("socket:[{}]", inode)))
        return fmt::format("pid {} ({})", pid, command_of(process.path()));
    }
  }
  return "";
}

// `   0: 0100007F:1F90 00000000:0000 0A tx:rx tr:when retrnsmt uid timeout inode ...`, addresses in hexadecimal.
std::string find_socket_inode(const std::string& table, std::uint16_t port) {
  const std::string wanted = fmt::format(":{:04X}", port);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >>
        inode;
    if (local.ends_with(wanted) && !inode.empty() && inode != "0") return inode;
  }
  return "";
}

}  // namespace fleetrun::launch
