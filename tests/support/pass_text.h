// What a pass makes of a program, as text.
#pragma once
#include <string>
#include <vector>

#include "runtime/graph/program_text.h"
#include "runtime/graph/verify.h"
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime::test {

struct PassResult {
  std::string text;
  std::vector<std::string> messages;
};

using PassFunction = void (*)(Program&, const PassContext&);

inline PassResult run_pass(PassFunction pass, const std::string& before,
                           const job::StrategySpec& strategy = {}, const OpTable& ops = all_ops(),
                           int world_size = 2) {
  PassResult result;
  Program program = parse_program(before, ops);
  pass(program, {.ops = ops, .strategy = strategy, .world_size = world_size, .messages = &result.messages});
  verify(program, ops);
  result.text = print_program(program, ops);
  return result;
}

}  // namespace fleetrun::runtime::test
