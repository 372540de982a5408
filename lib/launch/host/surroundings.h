// What we inherit from whoever starts us, and cannot work with.
#pragma once

namespace fleetrun::launch {

// Throws Error(missing) when the current folder is needed and was removed.
void check_current_folder();

// Throws Error(config) when it keeps us from our own files.
void check_umask();

}  // namespace fleetrun::launch
