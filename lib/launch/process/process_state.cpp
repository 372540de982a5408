#include "launch/process/process_state.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

struct ProcessState {
  char letter;  // as in proc(5)
  std::string_view name, description;
};

constexpr std::array kStates = {
    ProcessState{'R', "running", "running"},
    ProcessState{'S', "sleeping", "waiting"},
    ProcessState{'I', "sleeping", "idle (I)"},  // a thread of the kernel
    ProcessState{'D', "waiting for I/O", "waiting for a device (D)"},
    ProcessState{'T', "stopped", "stopped (T)"},
    ProcessState{'t', "stopped", "stopped by a debugger (t)"},
    ProcessState{'Z', "ended", "a zombie (Z)"},
};

const ProcessState* find_state(char letter) {
  const auto found = std::find_if(kStates.begin(), kStates.end(),
                                  [&](const ProcessState& state) { return state.letter == letter; });
  return found == kStates.end() ? nullptr : found;
}

}  // namespace

std::string name_state(char state) {
  const ProcessState* const known = find_state(state);
  return known == nullptr ? std::string(1, state) : std::string(known->name);
}

std::string describe_state(char state) {
  const ProcessState* const known = find_state(state);
  return known == nullptr ? fmt::format("in state {}", state) : std::string(known->description);
}

}  // namespace fleetrun::launch
