#include "runtime/observe/history.h"

#include <sstream>

#include <doctest/doctest.h>

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
    TrainingHistory history(path, {}, out);
    for (const int step : {5, 10, 15}) history.add(step, 0, kTrain);
    history.add(15, 0, kTest);
    history.add(20, 1, kTrain);
  }
  {
    TrainingHistory history(path, {15, kLater}, out);
    history.add(15, 0, kTest);  // the job evaluates the finished training again
    history.add(20, 1, kTrain);
  }
  CHECK(steps_in(folder.read("history.csv")) == "5 10 15 15 20 ");
  { TrainingHistory history(path, {}, out); }
  CHECK(steps_in(folder.read("history.csv")) == "");
  CHECK(out.str() == "");
}

TEST_CASE("rows that another training wrote after the checkpoint go") {
  const TemporaryFolder folder;
  folder.write("history.csv", "");
  const std::string path = std::string(folder.path()) + "/history.csv";
  std::ostringstream out;
  {
    TrainingHistory history(path, {}, out);
    for (const int step : {5, 10, 15}) history.add(step, 0, kTrain);
  }
  const std::string text = folder.read("history.csv");
  CHECK(ends_by(text, 15, kLater));
  CHECK_FALSE(ends_by(text, 15, 1.6e9));
  CHECK(ends_by(text, 5, 1.6e9));  // an evaluation may follow the checkpoint of its step
  { TrainingHistory(path, {15, 1.6e9}, out).add(20, 0, kTrain); }
  CHECK(steps_in(folder.read("history.csv")) == "20 ");
}

TEST_CASE("a line that was cut off goes, and a text that is no history counts for nothing") {
  const TemporaryFolder folder;
  folder.write("history.csv", "");
  std::ostringstream out;
  const std::string path = std::string(folder.path()) + "/history.csv";
  { TrainingHistory(path, {}, out).add(5, 0, kTrain); }
  const std::string text = folder.read("history.csv");
  CHECK(history_until(text + "10,0,17", 100) == text);
  CHECK(history_until("some,other,table\n1,2,3\n", 100) == "");
}

TEST_CASE("without its file a training goes on, with one warning") {
  std::ostringstream out;
  TrainingHistory history("/nowhere/history.csv", {}, out);
  history.add(5, 0, kTrain);
  CHECK(out.str().starts_with("warning: no more rows in history.csv: opening /nowhere/history.csv"));
  CHECK(out.str().find('\n') == out.str().size() - 1);
}

}  // namespace
}  // namespace fleetrun::runtime::history_test
