// The passes in the order in which they run, with a check of the program after each.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Sees the program as it was built ("built") and after each pass that ran, by the pass' name.
using PassWatcher = std::function<void(const std::string& pass, const Program& program)>;

// Whether PassWatcher calls a program so.
bool is_named_by_passes(std::string_view name);

// Throws Error(internal) naming the pass whose result does not verify.
void run_passes(Program& program, const PassContext& context, const PassWatcher& watcher = nullptr);

}  // namespace fleetrun::runtime
