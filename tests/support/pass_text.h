// What a pass makes of a program, as a program and as text.
#pragma once
#include <string>
#include <vector>

#include "runtime/graph/program_text.h"
#include "runtime/graph/verify.h"
#include "runtime/passes/shared/pass_context.h"

namespace fleetrun::runtime::test {

using PassFunction = void (*)(Program&, const PassContext&);

struct PassRun {
  Program program;
  std::vector<std::string> messages;
};

inline PassRun after_pass(Program program, PassFunction pass, const job::StrategySpec& strategy = {},
                          const OpTable& ops = all_ops(), int world_size = 2) {
  PassRun run = {std::move(program), {}};
  pass(run.program, {.ops = ops, .strategy = strategy, .world_size = world_size, .messages = &run.messages});
  verify(run.program, ops);
  return run;
}

struct PassResult {
  std::string text;
  std::vector<std::string> messages;
};

inline PassResult run_pass(PassFunction pass, const std::string& before,
                           const job::StrategySpec& strategy = {}, const OpTable& ops = all_ops(),
                           int world_size = 2) {
  const PassRun run = after_pass(parse_program(before, ops), pass, strategy, ops, world_size);
  return {print_program(run.program, ops), run.messages};
}

}  // namespace fleetrun::runtime::test
