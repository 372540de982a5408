// Whether other hosts may write to a folder, too.
#pragma once
#include <cstdint>
#include <string>

namespace fleetrun::launch {

// By the type of the file system, as statfs(2) has it: NFS, Lustre, GPFS, Ceph, FUSE and others. A folder that does not exist has the type of
// the one in which it would be made. False where nothing can be found out.
bool is_on_network(const std::string& folder);

bool is_network_type(std::uint32_t type);  // as in linux/magic.h

}  // namespace fleetrun::launch
