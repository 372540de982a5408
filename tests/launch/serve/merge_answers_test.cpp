#include "launch/serve/merge_answers.h"

#include <doctest/doctest.h>

#include "base/json/json_reader.h"

namespace fleetrun::launch::merge_answers_test {
namespace {

const Placed kTwo = {0, "run", {{"10.0.0.1", "one", "/a", {{0}}}, {"10.0.0.2", "two", "/b", {{0}, {1}}}}};

JsonValue json(const std::string& text) { return read_json(text).root; }

TEST_CASE("ps lists the ranks of all nodes in order, each with its host") {
  const NodeAnswers answers = {
      {0, json(R"({"run_id": "run", "attempt": 2, "ranks": [{"rank": 0, "state": "S"}]})")},
      {1, json(R"({"run_id": "run", "attempt": 2, "ranks": [{"rank": 1, "state": "R"}, {"rank": 2}]})")}};
  CHECK(to_json(merge_ps(kTwo, answers)) ==
        R"({"run_id": "run", "attempt": 2, "ranks": [{"rank": 0, "state": "S", "host": "one"}, )"
        R"({"rank": 1, "state": "R", "host": "two"}, {"rank": 2, "host": "two"}]})");
}

TEST_CASE("ps says which ranks' nodes did not answer, or not with what was asked") {
  const JsonValue own = json(R"({"ranks": [{"rank": 0}]})");
  const char* const wanted =
      R"({"ranks": [{"rank": 0, "host": "one"}, {"rank": 1, "state": "no answer", "host": "two"}, )"
      R"({"rank": 2, "state": "no answer", "host": "two"}]})";
  CHECK(to_json(merge_ps(kTwo, {{0, own}})) == wanted);
  CHECK(to_json(merge_ps(kTwo, {{0, own}, {1, json(R"({"error": "no"})")}})) == wanted);
}

TEST_CASE("signal lists whom all nodes sent it, whom they spared, and who did not answer") {
  const std::map<int, std::string> asked = {{0, "0"}, {1, "2"}};
  const JsonValue own = json(R"({"ranks": [0], "spared": []})");
  CHECK(to_json(merge_signal(kTwo, asked, {{0, own}, {1, json(R"({"ranks": [], "spared": [2]})")}})) ==
        R"({"ranks": [0], "spared": [2], "silent": []})");
  CHECK(to_json(merge_signal(kTwo, asked, {{0, own}})) == R"({"ranks": [0], "spared": [], "silent": [2]})");
}

}  // namespace
}  // namespace fleetrun::launch::merge_answers_test
