#include "launch/nodes/node_questions.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace fleetrun::launch::node_questions_test {
namespace {

using namespace std::chrono_literals;
using Answers = std::vector<std::optional<std::string>>;

const TimePoint kStart = TimePoint() + 1h;

struct Scene {
  void ask(PeerId node, const std::string& request, Clock::duration after = 0s) {
    questions.ask(
        node, {.id = 0, .request = request, .sender = "somebody"},
        [this](const std::optional<std::string>& answer) { answers.push_back(answer); }, kStart + after);
  }
  void answer(PeerId node, std::size_t which, const std::string& text) {
    questions.heard(node, {.id = sent.at(which).second.id, .text = text});
  }

  std::vector<std::pair<PeerId, Ask>> sent;
  Answers answers;
  NodeQuestions questions{[this](PeerId node, const Ask& ask) { sent.emplace_back(node, ask); }};
};

TEST_CASE("a node is asked one thing at a time, several nodes at once") {
  Scene scene;
  scene.ask(1, "one");
  scene.ask(1, "two");
  scene.ask(2, "three");
  REQUIRE(scene.sent.size() == 2);
  CHECK(scene.sent[0].second.request == "one");
  CHECK(scene.sent[0].second.sender == "somebody");
  CHECK(scene.sent[1].first == 2);
  scene.answer(1, 0, "first");
  REQUIRE(scene.sent.size() == 3);
  CHECK(scene.sent[2].second.request == "two");
  scene.answer(1, 2, "second");
  CHECK(scene.answers == Answers{"first", "second"});
}

TEST_CASE("a node that does not answer in time counts as silent, and its late answer for nothing") {
  Scene scene;
  scene.ask(1, "one");
  scene.ask(1, "two", 1s);
  CHECK(scene.questions.wake_at() == kStart + NodeQuestions::kPatience);
  scene.questions.woke(kStart + 1s);
  CHECK(scene.answers.empty());
  scene.questions.woke(kStart + 2s);
  CHECK(scene.answers == Answers{std::nullopt});
  CHECK(scene.sent.size() == 1);  // it still works on its answer
  scene.answer(1, 0, "late");
  CHECK(scene.answers.size() == 1);
  REQUIRE(scene.sent.size() == 2);
  scene.answer(1, 1, "in time");
  CHECK(scene.answers == Answers{std::nullopt, "in time"});
  CHECK_FALSE(scene.questions.wake_at());
}

TEST_CASE("a question that waits behind a silent one has no longer time than any other") {
  Scene scene;
  scene.ask(1, "one");
  scene.ask(1, "two");
  scene.questions.woke(kStart + 2s);
  CHECK(scene.answers == Answers{std::nullopt, std::nullopt});
  CHECK(scene.sent.size() == 1);
  scene.answer(1, 0, "late");
  scene.ask(1, "three", 3s);
  REQUIRE(scene.sent.size() == 2);
  CHECK(scene.sent[1].second.request == "three");
}

TEST_CASE("a lost node answers nothing, at once; whoever asks again is asked for") {
  Scene scene;
  scene.ask(1, "one");
  scene.ask(1, "two");
  scene.ask(2, "three");
  scene.questions.lost(1);
  scene.questions.lost(7);
  CHECK(scene.answers == Answers{std::nullopt, std::nullopt});
  scene.questions.heard(3, {.id = 1, .text = "from nobody"});
  scene.answer(2, 1, "third");
  CHECK(scene.answers.back() == "third");
}

TEST_CASE("an answer may lead to the next question") {
  Scene scene;
  scene.questions.ask(
      1, {.id = 0, .request = "one", .sender = ""},
      [&](const std::optional<std::string>&) { scene.ask(1, "more"); }, kStart);
  scene.answer(1, 0, "done");
  REQUIRE(scene.sent.size() == 2);
  CHECK(scene.sent[1].second.request == "more");
  CHECK(scene.sent[1].second.id != scene.sent[0].second.id);
}

}  // namespace
}  // namespace fleetrun::launch::node_questions_test
