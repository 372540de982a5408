// Descriptors 0, 1 and 2, which a program may be started without.
#pragma once

namespace fleetrun {

// Opens those that are closed on /dev/null: else the first files that we open would take their places, and our output.
void open_standard_descriptors();

}  // namespace fleetrun
