#include "launch/serve/remote_logs.h"

#include <functional>

#include <doctest/doctest.h>

#include "launch/logs/log_folder.h"
#include "launch/nodes/places.h"
#include "launch/serve/while_answered.h"

namespace fleetrun::launch::remote_logs_test {
namespace {

// Three nodes with two ranks each, as the first one sees them.
const Placed kThree = {0,
                       "run",
                       {{"10.0.0.1", "one", "/a", {{0}, {1}}},
                        {"10.0.0.2", "two", "/b", {{0}, {1}}},
                        {"10.0.0.3", "three", "/c", {{0}, {1}}}},
                       0};

Placed without_node(int node, int attempt) {
  Placed places = kThree;
  places.nodes.erase(places.nodes.begin() + node);
  places.attempt = attempt;
  return places;
}

// Follows these ranks of other nodes, as far as the run has them.
struct Follower {
  explicit Follower(const TemporaryFolder& folder, std::vector<int> ranks, const Placed& places = kThree)
      : wanted(std::move(ranks)),
        logs(folder.path(), places,
             [this](const Placed& each, int attempt) {
               RemoteLogs::ByNode chosen;
               for (const int rank : wanted)
                 if (const int node = node_of_rank(each, rank).value_or(0); node > 0)
                   chosen[node].push_back({{.rank = rank,
                                            .local_rank = rank - ranks_of_node(each, node).first,
                                            .errors = false,
                                            .attempt = attempt,
                                            .since = {}},
                                           LogText([rank] { return "[" + std::to_string(rank) + "] "; })});
               return chosen;
             },
             {[this](const std::string& text) { shown += text; },
              [this](const std::string& line) { said += line + "\n"; }}) {}

  std::vector<int> wanted;
  std::string shown, said;
  RemoteLogs logs;
};

std::string answer_with(const std::string& text, bool over, int attempt = 0, int newest = 0,
                        std::size_t from = 0) {
  const JsonValue piece = JsonValue::object({{"attempt", attempt},
                                             {"from", from},
                                             {"bytes", text.size()},
                                             {"size", from + text.size()},
                                             {"text", text}});
  return to_json(
      JsonValue::object({{"attempt", newest}, {"logs", JsonValue::list({piece})}, {"over", over}}));
}

// Runs `work` while a run answers the requests with these words, in turn. Returns the number of requests.
std::size_t requests_of(const TemporaryFolder& folder, const std::vector<std::string>& answers,
                        const std::function<void()>& work) {
  EventLoop loop;
  std::size_t asked = 0;
  while_answered(
      loop, folder,
      [&](const std::string&, const std::string&, const ControlServer::Reply& reply) {
        reply(asked < answers.size() ? answers[asked] : "");
        ++asked;
      },
      work);
  return asked;
}

TEST_CASE("a node that had nothing new after the end of the run is not asked again: the run may be gone") {
  const TemporaryFolder folder;
  Follower follower(folder, {2, 4});
  RemoteLogs& logs = follower.logs;
  bool has_all_too_early = true;
  // The run ends after node 1 was asked and before node 2 is.
  const std::size_t asked =
      requests_of(folder, {answer_with("", false), answer_with("", true), answer_with("", true)}, [&] {
        logs.look();
        has_all_too_early = logs.has_all();
        logs.look();
      });
  CHECK_FALSE(has_all_too_early);
  CHECK(logs.has_all());
  CHECK(asked == 3);
}

TEST_CASE("a node that had something new after the end of the run is asked again") {
  const TemporaryFolder folder;
  Follower follower(folder, {2});
  RemoteLogs& logs = follower.logs;
  bool has_all_too_early = true;
  requests_of(folder, {answer_with("goodbye\n", true), answer_with("", true)}, [&] {
    logs.look();
    has_all_too_early = logs.has_all();
    logs.look();
  });
  CHECK(follower.shown == "[2] goodbye\n");
  CHECK_FALSE(has_all_too_early);
  CHECK(logs.has_all());
}

TEST_CASE("each node that does not answer is named once") {
  const TemporaryFolder folder;
  Follower follower(folder, {2, 4});
  const auto silent = [](const char* node) {
    return to_json(JsonValue::object({{"error", std::string(node) + " does not answer"}, {"silent", true}}));
  };
  requests_of(folder, {silent("node 1"), silent("node 2"), silent("node 1"), silent("node 2")}, [&] {
    follower.logs.look();
    follower.logs.look();
  });
  CHECK(follower.said == "node 1 does not answer\nnode 2 does not answer\n");
}

TEST_CASE("when a node has begun anew in its folder, the rest of its log is said to be elsewhere") {
  const TemporaryFolder folder;
  Follower follower(folder, {2});
  const std::string nothing = to_json(JsonValue::object(
      {{"attempt", 1},
       {"logs", JsonValue::list({JsonValue::object({{"attempt", 0}, {"missing", false}})})}}));
  requests_of(folder, {answer_with("hello\n", false), nothing}, [&] {
    follower.logs.look();
    follower.logs.look();
  });
  CHECK(follower.shown == "[2] hello\n");
  CHECK(follower.said ==
        "node 1 (10.0.0.2, two) has moved the log of rank 2; its folder /b/previous/ may have more lines\n");
}

// Plays a run that changes its nodes between two answers. Each answer says first what the request must have in it.
struct Step {
  std::vector<std::string> wants;
  std::string answer;
  std::function<void()> before = [] {};
};
void play(const LogFolder& folder, const std::vector<Step>& steps, const std::function<void()>& work) {
  EventLoop loop;
  std::size_t step = 0;
  while_answered(
      loop, folder,
      [&](const std::string& request, const std::string&, const ControlServer::Reply& reply) {
        if (step >= steps.size()) return reply("");
        for (const std::string& part : steps[step].wants)
          CHECK_MESSAGE(request.find(part) != std::string::npos,
                        part << " in step " << step << ": " << request);
        steps[step].before();
        reply(steps[step].answer);
        ++step;
      },
      work);
  CHECK(step == steps.size());
}

// As the run does between two attempts.
void change_places(const LogFolder& logs, int ended_attempt, const Placed& places) {
  logs.keep_attempt(ended_attempt);
  write_places(logs, places);
}

const std::string kGone = R"({"gone": true, "over": false})";

TEST_CASE("when a lost node gives a rank's number to another node, the log there is shown from its start") {
  const TemporaryFolder run;
  const LogFolder files(run.path());
  write_places(files, kThree);
  Follower follower(run, {2});
  play(files,
       {{{R"("address": "10.0.0.2")", R"("from": 0)"}, answer_with("of node 1\nhal", false)},
        {{R"("address": "10.0.0.2")", R"("attempt": 0, "from": 13)"},
         kGone,
         [&] { change_places(files, 0, without_node(1, 1)); }},
        {{R"("address": "10.0.0.3")", R"("local_rank": 0)", R"("attempt": 1, "from": 0)"},
         answer_with("of node 2\n", false, 1, 1)}},
       [&] {
         for (int i = 0; i < 3; ++i) follower.logs.look();
       });
  CHECK(follower.shown == "[2] of node 1\n[2] hal\n[2] of node 2\n");
  CHECK(follower.said == "node 1 (10.0.0.2, two) has left the run; its folder /b/ may have more lines\n");
}

TEST_CASE("a rank that gets another number is shown to the end of its attempt, under its old number") {
  const TemporaryFolder run;
  const LogFolder files(run.path());
  write_places(files, kThree);
  Follower follower(run, {4});
  play(files,
       {{{R"("address": "10.0.0.3")"}, answer_with("one\n", false)},
        {{R"("attempt": 0, "from": 4)"},
         answer_with("two\n", false, 0, 0, 4),  // nothing of attempt 1 yet
         [&] { change_places(files, 0, without_node(1, 1)); }},
        {{R"("address": "10.0.0.3")", R"("attempt": 0, "from": 8)"}, answer_with("", false, 0, 1, 8)}},
       [&] {
         for (int i = 0; i < 4; ++i) follower.logs.look();
       });
  CHECK(follower.shown == "[4] one\n[4] two\n");
  CHECK(follower.logs.unread().empty());
  CHECK_FALSE(follower.logs.has_all());  // the run goes on without rank 4
}

TEST_CASE("the ranks of a node that joins are shown") {
  const TemporaryFolder run;
  const LogFolder files(run.path());
  const Placed two = without_node(2, 0);
  Placed three = kThree;
  three.attempt = 1;
  write_places(files, two);
  Follower follower(run, {2, 4}, two);
  play(files,
       {{{R"("address": "10.0.0.2")"}, answer_with("one\n", false), [&] { change_places(files, 0, three); }},
        {{R"("address": "10.0.0.2")", R"("attempt": 0)"}, answer_with("", false, 0, 1, 4)},
        {{R"("address": "10.0.0.2")", R"("attempt": 1, "from": 0)", R"("nodes": 2)"},
         answer_with("again\n", false, 1, 1)},
        {{R"("address": "10.0.0.3")", R"("attempt": 1, "from": 0)"}, answer_with("new\n", false, 1, 1)}},
       [&] {
         for (int i = 0; i < 3; ++i) follower.logs.look();
       });
  CHECK(follower.shown == "[2] one\n[2] again\n[4] new\n");
}

TEST_CASE("several changes between two looks are followed one by one") {
  const TemporaryFolder run;
  const LogFolder files(run.path());
  write_places(files, kThree);
  Follower follower(run, {4});
  play(files,
       {{{R"("address": "10.0.0.3")"}, answer_with("zero\n", false)},
        {{R"("address": "10.0.0.3")", R"("attempt": 0)"},
         answer_with("", false, 0, 3, 5),
         [&] {
           change_places(files, 0, without_node(1, 1));  // no rank 4
           files.keep_attempt(1);
           Placed again = kThree;
           again.attempt = 3;
           change_places(files, 2, again);
         }},
        {{R"("address": "10.0.0.3")", R"("attempt": 3, "from": 0)"}, answer_with("three\n", false, 3, 3)}},
       [&] {
         for (int i = 0; i < 4; ++i) follower.logs.look();
       });
  CHECK(follower.shown == "[4] zero\n[4] three\n");
}

TEST_CASE(
    "an attempt that began before the first answer is not shown under the numbers of the attempt before") {
  const TemporaryFolder run;
  const LogFolder files(run.path());
  write_places(files, kThree);
  Follower follower(run, {4});
  play(files,
       {{{R"("address": "10.0.0.3")", R"("attempt": -1)"},
         answer_with("of rank 2 by now\n", false, 1, 1),
         [&] { change_places(files, 0, without_node(1, 1)); }}},
       [&] {
         for (int i = 0; i < 2; ++i) follower.logs.look();
       });
  CHECK(follower.shown.empty());
}

}  // namespace
}  // namespace fleetrun::launch::remote_logs_test
