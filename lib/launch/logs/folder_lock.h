// The lock of a log folder, in log/.lock: it goes with the process, however that ends. Who looks takes no lock, so that nobody
// is held up by it.
#pragma once
#include <sys/types.h>

#include <string>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

struct FolderLock {
  UniqueFd fd;
  int missing = 0;  // errno of a file system that has no locks: then nothing is held
};

// `folder` is open on `path`. Throws Error(create) when a fleetrun holds it or something else stands there.
FolderLock lock_folder(int folder, const std::string& path);

struct LockHolder {
  pid_t pid = 0;    // that the user knows
  uid_t owner = 0;  // of our files in the folder
};

// Writes who holds it. Throws Error(create) when the file is not of this owner.
void sign(const FolderLock& lock, int folder, const std::string& path, const LockHolder& holder);

bool is_locked(const std::string& path);  // by a fleetrun that runs

// The process that has signed the lock; 0: it is not known.
pid_t pid_of_holder(const std::string& path);

// The host of the fleetrun that holds it, if that is another one than this. "": nobody holds it, or somebody here.
std::string other_host_of_holder(const std::string& path);

}  // namespace fleetrun::launch
