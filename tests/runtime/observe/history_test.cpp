#include "runtime/observe/history.h"

#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/temporary_folder.h"

namespace fleetrun::runtime::history_test {
namespace {

const std::vector<Scalar> kTrain = {{"train/loss", 1.5}, {"train/acc1", 0.25}, {"train/learning_rate", 0.1}};
const std::vector<Scalar> kTest = {{"test/loss", 2}, {"test/acc1", 0.5}, {"test/acc5", 1}};

// The steps of the rows, in order.
std::string steps_in(const std::string& text) {
  std::istringstream lines(text);
  std::string steps, line;
  for (std::getline(lines, line); std::getline(lines, line);) steps += line.substr(0, line.find(',')) + " ";
  return steps;
}

// A file that the launcher has made, and the history in a checkpoint.
struct Files {
  Files() { folder.write("history.csv", ""); }
  SavedPoint at(std::int64_t steps, int epoch) const { return {steps, epoch, folder / "saved.csv"}; }
  TrainingHistory begin(const SavedPoint& point = {}, std::int64_t first_step = 0) {
    return TrainingHistory(folder / "history.csv", point, first_step, out);
  }
  void save() const { folder.write("saved.csv", text()); }
  std::string text() const { return folder.read("history.csv"); }
  std::string columns() {
    begin();
    return text();
  }

  TemporaryFolder folder;
  std::ostringstream out;
};

TEST_CASE("a training that goes on from a checkpoint goes on with its rows, and none is there twice") {
  Files files;
  {
    TrainingHistory history = files.begin();
    for (const int step : {5, 10, 15}) history.add(step, 0, kTrain);
    history.add(15, 0, kTest);
    history.add(20, 1, kTrain);
  }
  files.save();  // while the training went on
  {
    TrainingHistory history = files.begin(files.at(15, 1), 15);
    history.add(15, 0, kTest);  // the job evaluates the finished training again
    history.add(20, 1, kTrain);
  }
  CHECK(steps_in(files.text()) == "5 10 15 15 20 ");
  files.begin();
  CHECK(steps_in(files.text()) == "");
  CHECK(files.out.str() == "");
}

TEST_CASE("the rows come from the checkpoint, whatever the file before had") {
  Files files;
  {
    TrainingHistory history = files.begin();
    for (const int step : {5, 10}) history.add(step, 0, kTrain);
    files.save();
    for (const int step : {15, 20}) history.add(step, 0, kTrain);  // another training writes over it
  }
  files.begin(files.at(10, 0), 10).add(11, 0, kTrain);
  CHECK(steps_in(files.text()) == "5 10 11 ");
  files.folder.write("history.csv", "");  // on another node
  files.begin(files.at(10, 0), 10).add(12, 0, kTrain);
  CHECK(steps_in(files.text()) == "5 10 12 ");
  files.begin({10, 0, files.folder / "nowhere"}, 10).add(13, 0, kTrain);
  CHECK(steps_in(files.text()) == "13 ");
  CHECK(files.out.str() == "");
}

// Rows of a history. A training step is a number, and a step with its evaluation has a "t".
std::string rows_of(const std::string& rows, int steps_per_epoch) {
  std::string text;
  std::istringstream words(rows);
  for (std::string word; words >> word;) {
    const int step = std::stoi(word);
    text += fmt::format("{},{},1700000000,{}\n", step, (step - 1) / steps_per_epoch,
                        word.ends_with('t') ? ",,,,,,2,0.5,1" : "1.5,0.25,,0.1,,,,,");
  }
  return text;
}

TEST_CASE("with other ranks than before, only the rows of repeated steps go") {
  Files files;
  const std::string columns = files.columns();

  // One rank, which takes 8 steps in an epoch, saved a checkpoint after two epochs, and two ranks go on.
  const std::string one = columns + rows_of("4 8 8t 12 16 16t", 8);
  files.folder.write("saved.csv", one + rows_of("20 24", 8));
  {
    TrainingHistory history = files.begin(files.at(16, 2), 8);
    history.add(8, 1, kTest);  // the job evaluates the finished training again
    history.add(12, 2, kTrain);
  }
  CHECK(files.text().starts_with(one));
  CHECK(steps_in(files.text()) == "4 8 8 12 16 16 12 ");

  // Two ranks, which take 4 steps, saved one after two epochs, and one rank goes on.
  files.folder.write("saved.csv", columns + rows_of("2 4 4t 6 8 8t 10 12 12t", 4));
  files.begin(files.at(8, 2), 16).add(20, 2, kTrain);
  CHECK(steps_in(files.text()) == "2 4 4 6 8 8 20 ");

  // One rank did the first epoch, two ranks half of the second one, and one more step before that was on the disk.
  files.folder.write("saved.csv", columns + rows_of("4 8 8t", 8) + rows_of("5 6 7", 4));
  files.begin(files.at(6, 1), 12).add(13, 1, kTrain);
  CHECK(steps_in(files.text()) == "4 8 8 5 6 13 ");
  CHECK(files.out.str() == "");
}

TEST_CASE("a line that was cut off goes, and a text that is no history counts for nothing") {
  Files files;
  files.begin().add(5, 0, kTrain);
  const std::string text = files.text();
  CHECK(history_until(text + "10,0,17", {100, 0}) == text);
  CHECK(history_until("some,other,table\n1,2,3\n", {100, 0}) == "");
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
