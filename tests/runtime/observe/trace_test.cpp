#include "runtime/observe/trace.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "support/run_world.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::trace_test {
namespace {

using nlohmann::json;

std::vector<json> spans_in(const json& events) {
  std::vector<json> spans;
  for (const json& event : events)
    if (event["ph"] == "X") spans.push_back(event);
  return spans;
}

json events_of(const Timeline& timeline, int rank, const TraceClock& clock) {
  return json::parse("[" + trace_events(timeline, rank, clock) + "]");
}

TEST_CASE("a span is an event in microseconds, in the process of its rank and the row of its lane") {
  Timeline timeline;
  const auto op = timeline.add({Lane::compute, "conv2d", "forward", "conv1.out"});
  const auto sum = timeline.add({Lane::communication, "all_reduce", "communication", ""});
  timeline.open(10);
  timeline.begin_step(3);
  timeline.note(op, 5'000'000, 5'001'500);
  timeline.note(sum, 5'002'000, 5'002'007);
  timeline.close();
  const std::vector<json> spans = spans_in(events_of(timeline, 2, {.offset_ns = 100, .start_ns = 4'000'000}));
  REQUIRE(spans.size() == 2);
  CHECK(spans[0] == json::parse(R"({"name": "conv2d", "cat": "forward", "ph": "X", "ts": 1000.1, "dur": 1.5,
                                    "pid": 2, "tid": 0, "args": {"step": 3, "value": "conv1.out"}})"));
  CHECK(spans[1]["ts"] == 1002.1);
  CHECK(spans[1]["dur"] == 0.007);
  CHECK(spans[1]["tid"] == 1000);
}

TEST_CASE("spans of a lane that overlap are in rows of their own, which are named") {
  Timeline timeline;
  const auto label = timeline.add({Lane::loader, "read and decode", "data", ""});
  timeline.open(10);
  timeline.note(label, 30, 40);
  timeline.note(label, 0, 20);
  timeline.note(label, 10, 30);
  timeline.close();
  const json events = events_of(timeline, 0, {});
  std::vector<int> rows;
  for (const json& span : spans_in(events)) rows.push_back(span["tid"]);
  CHECK(rows == std::vector<int>{3000, 3001, 3000});
  std::vector<std::string> names;
  for (const json& event : events)
    if (event["name"] == "thread_name") names.push_back(event["args"]["name"]);
  CHECK(names == std::vector<std::string>{"loader", "loader 2"});
}

TEST_CASE("names that JSON must not hold as they are do not break it") {
  Timeline timeline;
  timeline.open(1);
  timeline.note(timeline.add({Lane::data, "a\"b\\\n\xff", "data", ""}), 0, 1);
  timeline.close();
  CHECK(spans_in(events_of(timeline, 0, {})).front()["name"] == "a\"b\\\n\uFFFD");
}

// Ranks that train `steps` steps with one span each; what rank 0 says.
std::string traced(const TemporaryFolder& home, std::array<int, 2> wanted, int first, int steps) {
  std::string said;
  testing::run_world(2, [&](comm::Communicator& communicator) {
    job::OutputSpec output;
    output.dir = home.path();
    output.trace = wanted;
    const RankEnv env = {.rank = communicator.rank(), .world_size = 2};
    std::ostringstream out;
    Trace trace(output, env, communicator, out);
    const auto label = trace.timeline()->add({Lane::compute, "step", "forward", ""});
    for (int step = first; step < first + steps; ++step) {
      trace.before_step(step, 1);
      const std::int64_t now = monotonic_ns();
      trace.timeline()->note(label, now, now + 1000);
      trace.after_step(step);
    }
    trace.finish(first + steps - 1);
    if (communicator.rank() == 0) said = out.str();
  });
  return said;
}

TEST_CASE("row 18: a trace of steps that the training does not do is not written, and the run says why") {
  const TemporaryFolder home;
  CHECK(traced(home, {500, 505}, 1, 28) ==
        "warning: no trace of steps 500 to 505: the training ended after step 28\n");
  CHECK(
      traced(home, {2, 3}, 10, 5) ==
      "warning: no trace of steps 2 to 3: they were done before the checkpoint from which the training went on\n");
  CHECK_FALSE(home.has("trace.json"));
}

std::vector<std::pair<int, int>> ranks_and_steps(const TemporaryFolder& home) {
  std::vector<std::pair<int, int>> found;
  for (const json& span : spans_in(json::parse(home.read("trace.json"))["traceEvents"]))
    found.emplace_back(span["pid"], span["args"]["step"]);
  return found;
}

using Found = std::vector<std::pair<int, int>>;

TEST_CASE("the spans of all ranks in the steps that are wanted are in one file") {
  const TemporaryFolder home;
  const std::string said = traced(home, {2, 3}, 1, 5);
  CHECK(said == "trace: steps 2 to 3 of 2 ranks in " + home / "trace.json" + "\n");
  CHECK(ranks_and_steps(home) == Found{{0, 2}, {0, 3}, {1, 2}, {1, 3}});
}

TEST_CASE("a training that ends within the trace, or begins there, leaves what it has") {
  const TemporaryFolder home;
  CHECK(traced(home, {4, 9}, 1, 5).starts_with("trace: steps 4 to 5 of 2 ranks"));
  CHECK(ranks_and_steps(home) == Found{{0, 4}, {0, 5}, {1, 4}, {1, 5}});
  CHECK(traced(home, {4, 7}, 6, 5).starts_with("trace: steps 6 to 7 of 2 ranks"));
}

TEST_CASE("a trace for which there is no folder costs a warning") {
  const TemporaryFolder home;
  std::filesystem::create_directories(home / "trace.json/in the way");
  CHECK(traced(home, {1, 2}, 1, 2) ==
        "warning: no trace: " + home / "trace.json is in the way: a folder that fleetrun did not write\n");
  std::filesystem::remove_all(home / "trace.json");
  home.write("trace.json", "of the user");
  CHECK(traced(home, {1, 2}, 1, 2).starts_with("warning: no trace: "));
  CHECK(home.read("trace.json") == "of the user");
}

}  // namespace
}  // namespace fleetrun::runtime::trace_test
