#include "base/error/exit_codes.h"

#include <array>

namespace fleetrun {
namespace {

constexpr bool helps = false, repeats = true;

constexpr std::array kExitCodes = {
#define EXIT_CODE(kind, code, restart, meaning, again) ExitCode{code, restart, meaning, again},
#include "base/error/exit_codes.def"
#undef EXIT_CODE
};

}  // namespace

std::span<const ExitCode> exit_codes() { return kExitCodes; }

}  // namespace fleetrun
