// Excludes other processes that use the same file or folder, which several runs read and write.
#pragma once
#include <string>

#include "base/system/unique_fd.h"

namespace fleetrun {

// Creates `path` if it does not exist, and locks it. The lock ends with the descriptor. Waits at most 10 s.
// Throws Error(create|io), Error(temporary) when another process keeps the lock.
UniqueFd lock_file(const std::string& path);

// Locks a folder itself, so that no file is needed. Where the file system has no locks for folders, nobody is excluded.
UniqueFd lock_folder(const std::string& path);

}  // namespace fleetrun
