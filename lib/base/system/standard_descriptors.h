// Descriptors 0, 1 and 2. A program may be started without them.
#pragma once

namespace fleetrun {

// Opens those that are closed on /dev/null. Otherwise the first files that we open would get their numbers, and our
// output. They are open for reading only, so writing still fails: lost output never looks like written output.
void open_standard_descriptors();

// Whether what goes to standard output and to standard error arrives at the same place: one terminal, or after 2>&1 one file or pipe.
bool outputs_meet();

}  // namespace fleetrun
