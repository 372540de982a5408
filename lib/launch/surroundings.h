// What we inherit from whoever starts us, and cannot work with.
#pragma once

namespace fleetrun::launch {

// Throws Error(missing) when the current folder was removed, Error(config) when the umask keeps us from our own files.
void check_surroundings();

}  // namespace fleetrun::launch
