// What we inherit from whoever starts us, and cannot work with.
#pragma once

namespace fleetrun::launch {

// Throws Error(config) when it keeps us from our own files.
void check_umask();

}  // namespace fleetrun::launch
