#include "runtime/predict/answers.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

namespace fleetrun::runtime::answers_test {
namespace {

TEST_CASE("the most probable classes come first, equal ones in the order of their labels") {
  const std::array<float, 4> logits = {1, 3, 1, -200};
  const std::vector<Guess> guesses = best_guesses(logits, 3);
  REQUIRE(guesses.size() == 3);
  CHECK(guesses[0].label == 1);
  CHECK(guesses[1].label == 0);
  CHECK(guesses[2].label == 2);
  CHECK(guesses[0].probability == doctest::Approx(std::exp(2) / (std::exp(2) + 2)));
  CHECK(best_guesses(logits, 100).size() == 4);
}

TEST_CASE("probabilities of large logits are finite") {
  const std::array<float, 2> logits = {1000, -1000};
  CHECK(best_guesses(logits, 2).front().probability == 1);
  CHECK(best_guesses(logits, 2).back().probability == 0);
}

const std::vector<Guess> kGuesses = {{1, 0.75F}, {2, 0.1F}};

TEST_CASE("text has a line per guess, with the names in a column and numbers where there are no names") {
  const AnswerWriter writer(PredictFormat::text, {"cat", "goldfish"});
  CHECK(writer.header().empty());
  CHECK(writer.lines("a b.png", kGuesses) == "goldfish  0.7500  a b.png\n2         0.1000  a b.png\n");
  CHECK(writer.line_of_problem("a.png", "a.png: broken").empty());
}

TEST_CASE("text cannot command a terminal") {
  const AnswerWriter writer(PredictFormat::text, {"c\x1b[2J", "d"});
  CHECK(writer.lines("\n.png", {{0, 1}}) == "c?[2J  1.0000  ?.png\n");
}

TEST_CASE("csv has a header and quotes what needs it") {
  const AnswerWriter writer(PredictFormat::csv, {"cat", "fish, \"gold\""});
  CHECK(writer.header() == "file,rank,class,label,probability\n");
  CHECK(writer.lines("a.png", kGuesses) == "a.png,1,\"fish, \"\"gold\"\"\",1,0.75\na.png,2,2,2,0.1\n");
}

TEST_CASE("json has an object per image, also for one that cannot be read") {
  const AnswerWriter writer(PredictFormat::json, {"cat", "fish"});
  CHECK(writer.lines("\"a\".png", kGuesses) ==
        R"({"file": "\"a\".png", "predictions": [{"class": "fish", "label": 1, "probability": 0.75}, )"
        R"({"class": "2", "label": 2, "probability": 0.1}]})"
        "\n");
  CHECK(writer.line_of_problem("a.png", "a.png: broken") ==
        "{\"file\": \"a.png\", \"error\": \"a.png: broken\"}\n");
}

}  // namespace
}  // namespace fleetrun::runtime::answers_test
