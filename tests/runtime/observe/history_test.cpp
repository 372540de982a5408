#include "runtime/observe/history.h"

#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/temporary_folder.h"

namespace fleetrun::runtime::history_test {
namespace {

const std::vector<Scalar> kTrain = {{"train/loss", 1.5}, {"train/acc1", 0.25}, {"train/learning_rate", 0.1}};
const std::vector<Scalar> kTest = {{"test/loss", 2}, {"test/acc1", 0.5}, {"test/acc5", 1}};

constexpr double kLater = 1e10;  // seconds since 1970: after all rows

// The steps of the rows, in order.
std::string steps_in(const std::string& text) {
  std::istringstream lines(text);
  std::string steps, line;
  for (std::getline(lines, line); std::getline(lines, line);) steps += line.substr(0, line.find(',')) + " ";
  return steps;
}

TEST_CASE("a training that goes on from a checkpoint goes on with the rows, and none is there twice") {
  const TemporaryFolder folder;
  folder.write("history.csv", "");
  const std::string path = std::string(folder.path()) + "/history.csv";
  std::ostringstream out;
  {
    TrainingHistory history(path, {}, 0, out);
    for (const int step : {5, 10, 15}) history.add(step, 0, kTrain);
    history.add(15, 0, kTest);
    history.add(20, 1, kTrain);
  }
  {
    TrainingHistory history(path, {15, 1, kLater}, 15, out);
    history.add(15, 0, kTest);  // the job evaluates the finished training again
    history.add(20, 1, kTrain);
  }
  CHECK(steps_in(folder.read("history.csv")) == "5 10 15 15 20 ");
  { TrainingHistory history(path, {}, 0, out); }
  CHECK(steps_in(folder.read("history.csv")) == "");
  CHECK(out.str() == "");
}

TEST_CASE("rows that another training wrote after the checkpoint go") {
  const TemporaryFolder folder;
  folder.write("history.csv", "");
  const std::string path = std::string(folder.path()) + "/history.csv";
  std::ostringstream out;
  {
    TrainingHistory history(path, {}, 0, out);
    for (const int step : {5, 10, 15}) history.add(step, 0, kTrain);
  }
  const std::string text = folder.read("history.csv");
  CHECK_FALSE(has_other_training(text, {15, 0, kLater}));
  CHECK(has_other_training(text, {15, 0, 1.6e9}));
  CHECK(has_other_training(text, {15, 1, 1.6e9}));
  CHECK_FALSE(has_other_training(text, {5, 0, 1.6e9}));  // the training repeats them
  { TrainingHistory(path, {15, 0, 1.6e9}, 15, out).add(20, 0, kTrain); }
  CHECK(steps_in(folder.read("history.csv")) == "20 ");
}

// A history with these rows. A training step is a number, and a step with its evaluation has a "t".
std::string history_of(const std::string& rows, int steps_per_epoch, double time) {
  std::string text;
  std::istringstream words(rows);
  for (std::string word; words >> word;) {
    const int step = std::stoi(word);
    text += fmt::format("{},{},{},{}\n", step, (step - 1) / steps_per_epoch, time,
                        word.ends_with('t') ? ",,,,,,2,0.5,1" : "1.5,0.25,,0.1,,,,,");
  }
  return text;
}

TEST_CASE("with other ranks than before, only the rows of repeated steps go") {
  constexpr double kSaved = 1.7e9, kRepeated = kSaved + 60;
  const TemporaryFolder folder;
  folder.write("history.csv", "");
  const std::string path = std::string(folder.path()) + "/history.csv";
  std::ostringstream out;
  { TrainingHistory history(path, {}, 0, out); }
  const std::string columns = folder.read("history.csv");

  // One rank, which takes 8 steps in an epoch, saved a checkpoint after two epochs, and two ranks go on.
  const std::string one = columns + history_of("4 8 8t 12 16 16t", 8, kSaved - 60);
  folder.write("history.csv", one + history_of("20 24", 8, kRepeated));
  {
    TrainingHistory history(path, {16, 2, kSaved}, 8, out);
    history.add(8, 1, kTest);  // the job evaluates the finished training again
    history.add(12, 2, kTrain);
  }
  CHECK(folder.read("history.csv").starts_with(one));
  CHECK(steps_in(folder.read("history.csv")) == "4 8 8 12 16 16 12 ");

  // Two ranks, which take 4 steps, saved one after two epochs, and one rank goes on.
  const std::string two = columns + history_of("2 4 4t 6 8 8t", 4, kSaved - 60);
  folder.write("history.csv", two + history_of("10 12 12t", 4, kRepeated));
  { TrainingHistory(path, {8, 2, kSaved}, 16, out).add(20, 2, kTrain); }
  CHECK(steps_in(folder.read("history.csv")) == "2 4 4 6 8 8 20 ");

  // One rank did the first epoch, two ranks half of the second one. They saved it, and took one more step before that was on the disk.
  const std::string both = columns + history_of("4 8 8t", 8, kSaved - 60) + history_of("5 6", 4, kSaved - 30);
  folder.write("history.csv", both + history_of("7", 4, kSaved - 1) + history_of("8", 4, kRepeated));
  { TrainingHistory(path, {6, 1, kSaved}, 12, out).add(13, 1, kTrain); }
  CHECK(steps_in(folder.read("history.csv")) == "4 8 8 5 6 13 ");
  CHECK(out.str() == "");
}

TEST_CASE("a line that was cut off goes, and a text that is no history counts for nothing") {
  const TemporaryFolder folder;
  folder.write("history.csv", "");
  std::ostringstream out;
  const std::string path = std::string(folder.path()) + "/history.csv";
  { TrainingHistory(path, {}, 0, out).add(5, 0, kTrain); }
  const std::string text = folder.read("history.csv");
  CHECK(history_until(text + "10,0,17", {100, 0, kLater}) == text);
  CHECK(history_until("some,other,table\n1,2,3\n", {100, 0, kLater}) == "");
}

TEST_CASE("without its file a training goes on, with one warning") {
  std::ostringstream out;
  TrainingHistory history("/nowhere/history.csv", {}, 0, out);
  history.add(5, 0, kTrain);
  CHECK(out.str().starts_with("warning: no more rows in history.csv: opening /nowhere/history.csv"));
  CHECK(out.str().find('\n') == out.str().size() - 1);
}

}  // namespace
}  // namespace fleetrun::runtime::history_test
