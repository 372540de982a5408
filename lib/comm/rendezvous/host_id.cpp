#include "comm/rendezvous/host_id.h"

#include <sys/stat.h>

#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/run/run_key.h"

namespace fleetrun::comm {
namespace {

constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";

ino_t inode_of(const char* path) {
  struct stat facts {};
  return ::stat(path, &facts) == 0 ? facts.st_ino : 0;
}

std::string random_text() {
  const Nonce nonce = make_nonce();
  return fmt::format("{:02x}", fmt::join(nonce, ""));
}

}  // namespace

std::string host_id() {
  std::string boot;
  std::ifstream file(kBootId);
  // Namespaces have the same numbers on every machine: without this, nobody is on our host.
  if (!std::getline(file, boot)) boot = random_text();
  return fmt::format("{} {} {}", boot, inode_of("/proc/thread-self/ns/pid"),
                     inode_of("/proc/thread-self/ns/net"));
}

}  // namespace fleetrun::comm
