#include "runtime/exec/recorded_runs.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error/error.h"

namespace fleetrun::runtime::recorded_runs_test {
namespace {

// Writes down what it is asked for: letters of work, "[...]" recorded, "(...)" replayed.
class Log : public Streams {
 public:
  std::string text;
  bool refuses = false;

  void work(const std::string& letter) { (recording_ ? recorded_ : text) += letter; }

 private:
  class Replay : public Recording {
   public:
    Replay(Log& log, std::string work) : log_(log), work_(std::move(work)) {}
    void replay() override { log_.text += "(" + work_ + ")"; }

   private:
    Log& log_;
    std::string work_;
  };

  std::unique_ptr<Event> make_event() override { return nullptr; }
  std::unique_ptr<Stamp> make_stamp() override { return nullptr; }
  std::unique_ptr<comm::Memory> allocate_staging(std::size_t) override { return nullptr; }
  void upload(const void*, void*, std::size_t, int) override {}
  void download(const void*, void*, std::size_t) override {}
  void download_all(std::span<const Download>) override {}
  void synchronise() override {}
  bool can_record() const override { return true; }
  void begin_recording() override {
    recording_ = true;
    recorded_.clear();
  }
  std::unique_ptr<Recording> end_recording() override {
    if (!recording_) throw Error(ErrorKind::internal, "nothing is recorded");
    recording_ = false;
    text += "[" + recorded_ + "]";
    if (refuses) throw Error(ErrorKind::internal, "no");
    return std::make_unique<Replay>(*this, recorded_);
  }

  bool recording_ = false;
  std::string recorded_;
};

int places[20];

TEST_CASE("the second run with its feeds at some places is recorded, and from then on repeated") {
  Log log;
  RecordedRuns runs(log, "");
  const std::vector<void*> one = {&places[0]}, other = {&places[1]};
  for (int i = 0; i < 3; ++i) {
    runs.run(one, [&] { log.work("a"); });
    runs.run(other, [&] { log.work("b"); });
  }
  CHECK(log.text == "ab[a](a)[b](b)(a)(b)");
  CHECK(runs.replays() == 4);
}

TEST_CASE("runs that must not be recorded are given each time") {
  Log log;
  RecordedRuns runs(log, "dropout draws");
  for (int i = 0; i < 3; ++i) runs.run({}, [&] { log.work("a"); });
  CHECK(log.text == "aaa");
}

TEST_CASE("when values have moved, runs are recorded again") {
  Log log;
  RecordedRuns runs(log, "");
  const auto run = [&] { runs.run({}, [&] { log.work("a"); }); };
  run(), run(), runs.forget_if(false), runs.forget_if(true), run(), run();
  CHECK(log.text == "a[a](a)a[a](a)");
}

TEST_CASE("what the device cannot record is done the ordinary way, and it is said why") {
  Log log;
  log.refuses = true;
  RecordedRuns runs(log, "");
  for (int i = 0; i < 3; ++i) runs.run({}, [&] { log.work("a"); });
  CHECK(log.text == "a[a]aa");
  CHECK(runs.why_not() == "the device cannot record a step: no");
}

TEST_CASE("work that fails while it is recorded is tried once more, and its error goes to the caller") {
  Log log;
  RecordedRuns runs(log, "");
  runs.run({}, [&] { log.work("a"); });
  CHECK_THROWS_WITH_AS(runs.run({}, [] { throw Error(ErrorKind::internal, "broken"); }), "broken", Error);
  runs.run({}, [&] { log.work("a"); });
  CHECK(log.text == "a[]a");
}

// Two ranks by turns: each asks `agree` as often as the other, and here one asks alone. So the other's answers are given.
TEST_CASE("all ranks record a run with collectives, or none does") {
  const struct {
    std::vector<bool> others;  // their answers, one after the other
    std::string text, why_not;
  } cases[] = {{{true, true}, "a[a](a)(a)", ""},
               {{false}, "aaa", "another rank does not record its steps"},
               {{true, false}, "a[a]aa", "another rank cannot record a step"}};
  for (const auto& each : cases) {
    Log log;
    std::size_t asked = 0;
    RecordedRuns runs(log, "", [&](bool mine) { return each.others.at(asked++) && mine; });
    for (int i = 0; i < 3; ++i) runs.run({}, [&] { log.work("a"); });
    CHECK(log.text == each.text);
    CHECK(runs.why_not() == each.why_not);
    CHECK(asked == each.others.size());
  }
}

TEST_CASE("a rank that is lost while a run is recorded is the error of the run") {
  Log log;
  int asked = 0;
  RecordedRuns runs(log, "", [&](bool mine) { return ++asked > 0 && mine; });
  runs.run({}, [&] { log.work("a"); });
  CHECK_THROWS_WITH_AS(
      runs.run({}, [] { throw Error(ErrorKind::temporary, "rank 0: all_reduce: waited for rank 1"); }),
      "rank 0: all_reduce: waited for rank 1", Error);
  CHECK(asked == 1);  // nobody can answer any more
  CHECK(log.text == "a[]");
}

TEST_CASE("a rank that cannot record tells the others") {
  Log log;
  std::vector<bool> said;
  const auto agree = [&](bool mine) {
    said.push_back(mine);
    return mine;
  };
  RecordedRuns traced(log, "the ops are traced", agree);
  for (int i = 0; i < 3; ++i) traced.run({}, [&] { log.work("a"); });
  CHECK(said == std::vector{false});
  log.refuses = true, said.clear();
  RecordedRuns refused(log, "", agree);
  for (int i = 0; i < 3; ++i) refused.run({}, [&] { log.work("a"); });
  CHECK(said == std::vector{true, false});
}

TEST_CASE("if values have moved on one rank, all ranks record their runs again") {
  Log log;
  bool others = true;
  RecordedRuns runs(log, "", [&](bool mine) { return mine && others; });
  const auto run = [&] { runs.run({}, [&] { log.work("a"); }); };
  run(), run();
  others = false, runs.forget_if(false), others = true;
  run(), run();
  CHECK(log.text == "a[a](a)a[a](a)");
}

TEST_CASE("feeds that lie elsewhere in each run are not recorded for ever") {
  Log log;
  RecordedRuns runs(log, "");
  for (int& place : places) runs.run({&place}, [&] { log.work("a"); });
  CHECK(log.text == std::string(20, 'a'));
  CHECK(runs.why_not() == "the feeds lie at other places in each step");
}

}  // namespace
}  // namespace fleetrun::runtime::recorded_runs_test
