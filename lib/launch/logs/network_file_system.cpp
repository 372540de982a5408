#include "launch/logs/network_file_system.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace fleetrun::launch {
namespace {

// linux/magic.h has no names for these.
constexpr std::uint32_t kBeeGfs = 0x19830326;
constexpr std::uint32_t kCifs = 0xff534d42;
constexpr std::uint32_t kFuse = 0x65735546;
constexpr std::uint32_t kGfs2 = 0x01161970;
constexpr std::uint32_t kGpfs = 0x47504653;
constexpr std::uint32_t kLustre = 0x0bd00bd0;
constexpr std::uint32_t kOcfs2 = 0x7461636f;
constexpr std::uint32_t kOrangeFs = 0x20030528;
constexpr std::uint32_t kPanFs = 0xaad7aaea;
constexpr std::uint32_t kSmb2 = 0xfe534d42;

constexpr std::array<std::uint32_t, 16> kOfNetworks = {AFS_SUPER_MAGIC,
                                                       CEPH_SUPER_MAGIC,
                                                       CODA_SUPER_MAGIC,
                                                       NFS_SUPER_MAGIC,
                                                       SMB_SUPER_MAGIC,
                                                       V9FS_MAGIC,
                                                       kBeeGfs,
                                                       kCifs,
                                                       kFuse,
                                                       kGfs2,
                                                       kGpfs,
                                                       kLustre,
                                                       kOcfs2,
                                                       kOrangeFs,
                                                       kPanFs,
                                                       kSmb2};

}  // namespace

bool is_on_network(const std::string& folder) {
  struct statfs facts {};
  std::filesystem::path path = folder.empty() ? "." : folder;
  while (::statfs(path.c_str(), &facts) != 0) {
    const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
    if (parent == path || path == ".") return false;
    path = parent;
  }
  return is_network_type(static_cast<std::uint32_t>(facts.f_type));
}

bool is_network_type(std::uint32_t type) { return std::ranges::find(kOfNetworks, type) != kOfNetworks.end(); }

}  // namespace fleetrun::launch
