// Counts the oneDNN primitives that this process makes, by standing in front of the library's own function. The program
// has to export its symbols (ENABLE_EXPORTS).
#pragma once

namespace fleetrun::runtime::test {

long primitives_made();  // since the process began, by all threads

}  // namespace fleetrun::runtime::test
