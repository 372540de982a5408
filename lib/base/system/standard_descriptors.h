// Descriptors 0, 1 and 2, which a program may be started without.
#pragma once

namespace fleetrun {

// Opens the closed ones on /dev/null, for reading: otherwise the first files that we open take their places and our output. Writing to
// a descriptor that was closed still fails, so that nobody takes lost output for written output.
void open_standard_descriptors();

}  // namespace fleetrun
