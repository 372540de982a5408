#include "runtime/passes/shared/rewrite.h"

#include <doctest/doctest.h>

#include "runtime/graph/program_text.h"
#include "runtime/graph/verify.h"

namespace fleetrun::runtime::rewrite_test {
namespace {

const std::string kValues =
    "feed a f32[1]\nactivation b f32[1]\nactivation c f32[1]\nactivation d f32[1]\nactivation e f32[1]\n";

// Replaces the relu that makes `part` and the one that makes `last` by one in place of the last.
std::string joined(const std::string& ops, const std::string& part, const std::string& last) {
  Program program = parse_program(kValues + ops, all_ops());
  Rewrite rewrite(program, all_ops());
  const OpId first = rewrite.writer(program.find(part)), second = rewrite.writer(program.find(last));
  rewrite.replace({first, second}, second,
                  rewrite.make("relu", {{"x", rewrite.view(first).input_id("x")}},
                               {{"y", program.find(last)}}, {}, Role::forward));
  rewrite.finish();
  verify(program, all_ops());
  return print_program(program, all_ops()).substr(kValues.size());
}

TEST_CASE("one op comes to stand in the place of several") {
  CHECK(joined("relu x=a -> y=b {} forward\n"
               "relu x=a -> y=c {} forward\n"
               "relu x=b -> y=d {} forward\n"
               "relu x=c -> y=e {} forward\n",
               "c", "e") ==
        "relu x=a -> y=b {} forward\n"
        "relu x=b -> y=d {} forward\n"
        "relu x=a -> y=e {} forward\n");
}

TEST_CASE("who writes and who alone reads a value") {
  Program program = parse_program(kValues +
                                      "fetch d\n"
                                      "relu x=a -> y=b {} forward\n"
                                      "relu x=b -> y=c {} forward\n"
                                      "relu x=c -> y=d {} forward\n"
                                      "relu x=c -> y=e {} forward\n",
                                  all_ops());
  const Rewrite rewrite(program, all_ops());
  const auto id = [&](const char* name) { return program.find(name); };
  CHECK(rewrite.writer(id("a")) == kNone);
  CHECK(rewrite.writer_of_type(id("b"), "relu") == 0);
  CHECK(rewrite.writer_of_type(id("b"), "scale") == kNone);
  CHECK(rewrite.only_reader(id("a")) == kNone);  // a feed: it outlives the step
  CHECK(rewrite.only_reader(id("b")) == 1);
  CHECK(rewrite.only_reader(id("c")) == kNone);
  CHECK(rewrite.only_reader(id("d")) == kNone);
}

TEST_CASE("a pass says which of its ops a device lacks") {
  const job::StrategySpec strategy;
  const OpNames some = {"relu"};
  std::vector<std::string> messages;
  const PassContext context = {
      .ops = all_ops(), .strategy = strategy, .device_ops = &some, .messages = &messages};
  CHECK(device_has_all(context, "fuse", {"relu"}));
  CHECK(!device_has_all(context, "fuse", {"relu", "relu6"}));
  CHECK(messages == std::vector<std::string>{"fuse: this device has no relu6, nothing is fused"});
}

}  // namespace
}  // namespace fleetrun::runtime::rewrite_test
