#include "runtime/observe/history.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include <doctest/doctest.h>

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
  SavedPoint at(std::int64_t steps) const { return {steps, folder / "saved.csv"}; }
  TrainingHistory begin(const SavedPoint& point = {}, std::int64_t first_step = 0) {
    return TrainingHistory(folder / "history.csv", point, first_step, out);
  }
  void save() const { folder.write("saved.csv", text()); }
  std::string text() const { return folder.read("history.csv"); }

  TemporaryFolder folder;
  std::ostringstream out;
};

// While it lives, a file of this process may have no more bytes; a write beyond gives EFBIG.
struct FileLimit {
  explicit FileLimit(std::size_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

TEST_CASE("rows that a full disk does not take are missing, and the others follow") {
  Files files;
  TrainingHistory history = files.begin();
  history.add(5, 0, kTrain);
  {
    const FileLimit limit(files.text().size() + 7);
    history.add(10, 0, kTrain);
    history.add(15, 0, kTrain);
  }
  history.add(20, 0, kTrain);
  CHECK(steps_in(files.text()) == "5 20 ");
  CHECK(files.out.str().starts_with("warning: rows are missing in history.csv: "));
  CHECK(std::ranges::count(files.out.str(), '\n') == 1);
}

TEST_CASE("a training that goes on from a checkpoint goes on with its rows, whatever the file before had") {
  Files files;
  {
    TrainingHistory history = files.begin();
    for (const int step : {5, 10}) history.add(step, 0, kTrain);
    files.save();
    for (const int step : {15, 20})
      history.add(step, 0, kTrain);  // the training repeats these, or it is another one
  }
  files.begin(files.at(10), 10).add(11, 0, kTrain);
  CHECK(steps_in(files.text()) == "5 10 11 ");
  files.folder.write("history.csv", "");  // on another node
  files.begin(files.at(10), 10).add(12, 0, kTrain);
  CHECK(steps_in(files.text()) == "5 10 12 ");
  files.begin();
  CHECK(steps_in(files.text()) == "");
  CHECK(files.out.str() == "");
}

TEST_CASE("hunt: rows whose steps other ranks counted stay, also within an epoch") {
  Files files;
  {
    TrainingHistory history = files.begin();
    for (const int step : {10, 20, 30}) history.add(step, 0, kTrain);  // one rank
  }
  files.save();
  files.begin(files.at(16), 16).add(20, 0, kTrain);  // two ranks, which saved step 16
  CHECK(steps_in(files.text()) == "10 20 30 20 ");
}

TEST_CASE("an evaluation that is repeated is there twice only if its scores have changed") {
  Files files;
  {
    TrainingHistory history = files.begin();
    history.add(15, 0, kTrain);
    history.add(15, 0, kTest);
  }
  files.save();
  files.begin(files.at(15), 8).add(8, 0, kTest);  // other ranks count 8 steps
  CHECK(steps_in(files.text()) == "15 15 ");
  files.begin(files.at(15), 8).add(8, 0, {{"test/loss", 3}, {"test/acc1", 0.5}, {"test/acc5", 1}});
  CHECK(steps_in(files.text()) == "15 15 8 ");
  {
    TrainingHistory history = files.begin(files.at(15), 15);
    history.add(20, 1, kTrain);
    history.add(20, 1, kTest);
  }
  CHECK(steps_in(files.text()) == "15 15 20 20 ");
}

TEST_CASE("rows that cannot be had from the checkpoint are missed with a word") {
  Files files;
  files.begin({15, files.folder / "nowhere"}, 15).add(20, 0, kTrain);
  CHECK(steps_in(files.text()) == "20 ");
  CHECK(files.out.str() == "history.csv has no rows of the steps up to 15: the checkpoint has no rows\n");
  files.out.str("");
  files.folder.write("saved.csv", "some,other,table\n1,2,3\n");
  files.begin(files.at(15), 15).add(20, 0, kTrain);
  CHECK(steps_in(files.text()) == "20 ");
  CHECK(files.out.str().ends_with("saved.csv is not a table of a training\n"));
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
