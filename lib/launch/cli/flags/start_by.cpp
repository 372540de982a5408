#include "launch/cli/flags/start_by.h"

#include <array>
#include <cstddef>

namespace fleetrun::launch {
namespace {

// In the order of the enumeration.
constexpr std::array<const char*, 7> kStarterNames = {"auto",    "none",   "srun", "pbsdsh",
                                                      "blaunch", "mpirun", "ssh"};

}  // namespace

std::string name_of(StartBy starter) { return kStarterNames.at(static_cast<std::size_t>(starter)); }

}  // namespace fleetrun::launch
