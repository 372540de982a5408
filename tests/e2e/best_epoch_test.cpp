// checkpoint.keep_best and train.early_stopping with the real launcher and the real worker.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/system/unique_fd.h"
#include "e2e/best_weights.h"
#include "e2e/saved_training.h"
#include "e2e/weight_files.h"

namespace fleetrun::best_epoch_test {
namespace {

namespace fs = std::filesystem;

using best_weights::report_of;
using best_weights::train;
using best_weights::Training;
using saved_training::kill_when;

// The losses of the evaluations, in the order of the epochs.
std::vector<double> test_losses(const std::string& out) {
  std::vector<double> losses;
  const std::regex line(R"(\[Epoch \d+, test\] loss: ([0-9.]+))");
  for (std::sregex_iterator found(out.begin(), out.end(), line), end; found != end; ++found)
    losses.push_back(std::stod((*found)[1]));
  return losses;
}

std::ptrdiff_t best_of(const std::vector<double>& losses) {
  return std::min_element(losses.begin(), losses.end()) - losses.begin();
}

std::string told_aside(const Launch& launch) {
  return "earlier best weights: " + launch.folder.path() + "/output/best.previous.safetensors\n";
}

// Trains with --max_restart. The first attempt fails before it looks for a checkpoint, because somebody else has the lock of the folder.
ChildResult train_at_second_attempt(const Launch& launch, const Words& overrides) {
  const UniqueFd lock(::open((launch.folder / "output/saved/.lock").c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
  Words command = {FLEETRUN_BINARY, "--max_restart=1", "--restart_delay=2", "job.json"};
  command.insert(command.end(), overrides.begin(), overrides.end());
  fs::remove_all(launch.folder / "log");
  ChildProcess child(command, launch.options());
  const auto has_failed = [&](const char* log) {
    return contains(launch.folder.read(log), "keeps its checkpoints");
  };
  REQUIRE(comes_true([&] { return has_failed("log/workerlog.0") || has_failed("log/attempt-0/workerlog.0"); },
                     60s));
  ::flock(lock.get(), LOCK_UN);
  return child.wait();
}

TEST_CASE("the weights of the best epoch stay in a file, and the summary names them") {
  const Training whole;
  const ChildResult result = train(whole);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const std::vector<double> losses = test_losses(result.out);
  REQUIRE(losses.size() == 8);
  const auto best = best_of(losses);
  REQUIRE_MESSAGE(best < 7, result.out);  // or there would be nothing to keep
  CHECK(contains(result.out, fmt::format("best epoch {}: loss {:.5f}, weights: {}/output/best.safetensors",
                                         best, losses[static_cast<std::size_t>(best)], whole.folder.path())));
  const nlohmann::json report = report_of(whole);
  CHECK(report["best"]["epoch"] == best);
  CHECK(report["best"]["metric"] == "loss");

  // A training that ends with that epoch ends with those weights.
  const Training shorter;
  REQUIRE(train(shorter, {fmt::format("train.epochs={}", best + 1), "checkpoint.keep_best=null"}).code == 0);
  CHECK(testing::WeightFile(whole.best()).numbers ==
        testing::WeightFile(shorter.folder.read("output/model.safetensors")).numbers);
  CHECK_FALSE(shorter.folder.has("output/best.safetensors"));
}

TEST_CASE("a training that is killed and goes on keeps the same best weights, whatever the strategy") {
  for (const Words& strategy : {Words{},
                                Words{"strategy.sharding=true", "strategy.sharding_configs.stage=3",
                                      "optimizer.ema_decay=0.5", "optimizer.ema_evaluate=true"},
                                Words{"strategy.localsgd=true", "strategy.localsgd_configs.k_steps=3"}}) {
    CAPTURE(strategy.size());
    const Training whole, killed;
    REQUIRE(train(whole, strategy).code == 0);
    kill_when(killed, "-step-16", SIGKILL, strategy);
    const ChildResult again = train(killed, strategy);
    REQUIRE_MESSAGE(again.code == 0, again.err);
    CHECK(contains(again.out, "resuming from "));
    CHECK(testing::WeightFile(killed.best()).numbers == testing::WeightFile(whole.best()).numbers);
    CHECK(report_of(killed)["best"]["epoch"] == report_of(whole)["best"]["epoch"]);
  }
}

TEST_CASE("a training that starts anew sets the best weights of the one before aside") {
  const Training launch;
  REQUIRE(train(launch).code == 0);
  const std::string first = launch.best();
  const ChildResult second = train(launch, {"checkpoint.resume=never", "train.epochs=1", "train.seed=2"});
  REQUIRE_MESSAGE(second.code == 0, second.err);
  CHECK(contains(second.out, told_aside(launch)));
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
  CHECK(launch.best() != first);
}

TEST_CASE(
    "a training that keeps its best weights only from a resume on does not take those of another training") {
  const Training launch;
  const std::string file = launch.folder.path() + "/output/best.safetensors";
  REQUIRE(train(launch, {"checkpoint.keep_best=null", "train.epochs=1"}).code == 0);
  REQUIRE(train(launch).code == 0);  // the other training, which learns well
  const std::string first = launch.best();
  const Words slow = {"checkpoint.resume=auto", "checkpoint.dir=other", "optimizer.learning_rate=0.00001"};
  const auto with = [&](Words words) {
    words.insert(words.end(), slow.begin(), slow.end());
    return words;
  };
  REQUIRE(train(launch, with({"checkpoint.keep_best=null", "train.epochs=1"})).code == 0);
  const ChildResult result = train(launch, with({"train.epochs=3"}));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, told_aside(launch)));
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
  CHECK(launch.best() != first);
}

TEST_CASE(
    "hunt 41: each restart before the first checkpoint keeps the best weights of the attempt before it") {
  const Training launch;
  REQUIRE(train(launch, {}, 1).code == 0);
  const std::string earlier = launch.best();
  fs::remove_all(launch.folder / "log");
  ChildProcess child(
      {FLEETRUN_BINARY, "--max_restart=2", "--restart_delay=0.1", "job.json", "checkpoint.resume=never",
       "checkpoint.every_epochs=100000", "train.epochs=300", "train.seed=2"},
      launch.options());
  // When the log is there, log/workerlog.0 is that of the next attempt.
  for (const char* archived : {"log/attempt-0/workerlog.0", "log/attempt-1/workerlog.0"}) {
    REQUIRE(
        comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "\nbest weights: "); }, 60s));
    for (const pid_t worker : workers_in(launch.folder)) ::kill(worker, SIGKILL);
    REQUIRE(comes_true([&] { return launch.folder.has(archived); }, 60s));
  }
  const ChildResult result = child.wait();
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(launch.folder.read("output/best.previous.safetensors") == earlier);
  CHECK_MESSAGE(contains(result.out, "/output/best.1.safetensors\n"), result.out);
}

TEST_CASE("hunt 37: a training that changes the metric of its best epoch twice loses no best weights") {
  const Training launch;
  const auto with = [&](const std::string& metric, int epochs) {
    const ChildResult result =
        train(launch, {"checkpoint.keep_best=" + metric, "train.epochs=" + std::to_string(epochs)});
    REQUIRE_MESSAGE(result.code == 0, result.err);
    return launch.best();
  };
  const std::string first = with("acc1", 3), second = with("loss", 5);
  REQUIRE(first != second);
  with("acc1", 7);
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
  CHECK(launch.folder.read("output/best.1.safetensors") == second);
}

TEST_CASE("a resume that does not keep the best weights does not make the training forget them") {
  const Training launch;
  REQUIRE(train(launch).code == 0);
  const std::string first = launch.best();
  const nlohmann::json best = report_of(launch)["best"];
  // At this rate nothing changes any more, so no later epoch is better.
  const std::string rate = "optimizer.learning_rate=1e-30";
  const ChildResult between = train(launch, {"checkpoint.keep_best=null", "train.epochs=9", rate});
  REQUIRE_MESSAGE(between.code == 0, between.err);
  CHECK_FALSE(contains(between.out, "best epoch"));
  CHECK_FALSE(report_of(launch).contains("best"));
  const ChildResult last = train(launch, {"train.epochs=10", rate});
  REQUIRE_MESSAGE(last.code == 0, last.err);
  CHECK_FALSE(contains(last.out, "earlier best weights"));
  CHECK(report_of(launch)["best"]["epoch"] == best["epoch"]);
  CHECK(launch.best() == first);
}

TEST_CASE(
    "a training that goes on from a named checkpoint keeps no best weights that it did not have there") {
  const Training launch, other;
  REQUIRE(train(launch).code == 0);
  const std::string first = launch.best();
  REQUIRE(report_of(launch)["best"]["epoch"] > 0);  // later than the checkpoint of the other training
  REQUIRE(train(other, {"train.epochs=1", "train.seed=9"}).code == 0);
  const std::string named =
      "checkpoint.resume=" + (other.folder / ("output/saved/" + saved_training::saved(other).back()));
  const ChildResult more = train(launch, {named, "train.epochs=3", "train.seed=9"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(contains(more.out, told_aside(launch)));
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
  const std::vector<double> losses = test_losses(more.out);
  REQUIRE(losses.size() == 2);
  CHECK(report_of(launch)["best"]["epoch"] == 1 + best_of(losses));
}

TEST_CASE("a training that starts anew sets the best weights aside, also if its first attempt failed early") {
  const Training launch;
  REQUIRE(train(launch, {}, 1).code == 0);
  const std::string first = launch.best();
  const ChildResult anew =
      train_at_second_attempt(launch, {"checkpoint.resume=never", "train.epochs=2", "train.seed=2"});
  REQUIRE_MESSAGE(anew.code == 0, anew.err);
  CHECK_MESSAGE(contains(anew.out, told_aside(launch)), anew.out);
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
}

TEST_CASE("hunt 12: a restart before the first checkpoint leaves the best weights of an earlier training") {
  const Training launch;
  REQUIRE(train(launch, {}, 1).code == 0);
  const std::string first = launch.best();
  fs::remove_all(launch.folder / "log");
  ChildProcess child(
      {FLEETRUN_BINARY, "--max_restart=1", "--restart_delay=0.1", "job.json", "checkpoint.resume=never",
       "checkpoint.every_epochs=100000", "train.epochs=300", "train.seed=2"},
      launch.options());
  REQUIRE(
      comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "\nbest weights: "); }, 60s));
  for (const pid_t worker : workers_in(launch.folder)) ::kill(worker, SIGKILL);
  const ChildResult result = child.wait();
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(
      contains(result.out, "earlier best weights: " + launch.folder.path() + "/output/best.1.safetensors\n"),
      result.out);
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
}

TEST_CASE("a training whose first attempt fails early does not report the best epoch of another training") {
  const Training launch;
  REQUIRE(train(launch, {"checkpoint.keep=100"}, 1).code == 0);
  const std::string first = launch.best();
  REQUIRE(report_of(launch)["best"]["epoch"] > 0);
  const std::string branch =
      "checkpoint.resume=" + (launch.folder / ("output/saved/" + saved_training::saved(launch).front()));
  const ChildResult more =
      train_at_second_attempt(launch, {branch, "train.epochs=3", "optimizer.learning_rate=0.0001"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK_MESSAGE(contains(more.out, told_aside(launch)), more.out);
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
  CHECK(report_of(launch)["best"]["epoch"] == 1 + best_of(test_losses(more.out)));
}

TEST_CASE("best weights that are newer than the checkpoint go aside, and the training finds the same again") {
  const Training launch;
  const Words slow = {"optimizer.learning_rate=0.001", "checkpoint.keep=100", "train.epochs=6"};
  REQUIRE(train(launch, slow, 2).code == 0);
  REQUIRE(report_of(launch)["best"]["epoch"] == 5);
  const std::string best = launch.best();
  for (const std::string& name : saved_training::saved(launch))  // as after a crash
    if (name.ends_with("-step-24")) fs::remove_all(launch.folder / ("output/saved/" + name));
  for (int start = 0; start < 2; ++start) {
    const ChildResult again = train(launch, slow, 2);
    REQUIRE_MESSAGE(again.code == 0, again.err);
    CHECK(launch.best() == best);
    CHECK(launch.folder.read("output/best.previous.safetensors") == best);
    CHECK_FALSE(launch.folder.has("output/best.1.safetensors"));
  }
  CHECK(report_of(launch)["best"]["epoch"] == 5);
}

TEST_CASE("without checkpoints a restart keeps the best weights of the attempt before it") {
  const Training launch;
  ChildProcess child(
      {FLEETRUN_BINARY, "--max_restart=1", "--restart_delay=0.1", "job.json", "checkpoint.dir=null",
       "train.epochs=1000000", "optimizer.learning_rate=0.00001"},  // each epoch is the best one so far
      launch.options());
  REQUIRE(
      comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "[Epoch 9, test]"); }, 60s));
  ::kill(workers_in(launch.folder).at(0), SIGKILL);
  CHECK(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), told_aside(launch)); }, 60s));
  CHECK(launch.folder.has("output/best.previous.safetensors"));
  child.send(SIGTERM);
  CHECK(child.wait().code == 128 + SIGTERM);
}

TEST_CASE("hunt 12: a training is refused if model.pretrained is the best.safetensors that it would rename") {
  const Training launch;
  REQUIRE(train(launch, {"train.epochs=1", "checkpoint.dir=null"}).code == 0);
  const std::string first = launch.best();
  const ChildResult result =
      train(launch, {"train.epochs=1", "checkpoint.dir=null", "model.pretrained=output/best.safetensors"});
  CHECK(result.code == 78);
  CHECK_MESSAGE(contains(result.err, "model.pretrained is "), result.err);
  CHECK(launch.best() == first);
}

TEST_CASE("hunt 53: a training may begin with the best weights in a checkpoint of an earlier one") {
  const Training launch;
  REQUIRE(train(launch, {"train.epochs=1"}).code == 0);
  const std::string pretrained =
      "model.pretrained=" +
      (launch.folder / ("output/saved/" + saved_training::saved(launch).back() + "/best.safetensors"));
  const ChildResult result = train(launch, {"train.epochs=1", "checkpoint.dir=other", pretrained});
  CHECK_MESSAGE(result.code == 0, result.err);
}

TEST_CASE(
    "a training that goes on does not mind that its initial weights have been replaced by its best ones") {
  const Training launch;
  REQUIRE(train(launch, {"train.epochs=2"}).code == 0);
  const ChildResult more = train(launch, {"train.epochs=3", "model.pretrained=output/best.safetensors"});
  CHECK_MESSAGE(more.code == 0, more.err);
  CHECK(contains(more.out, "resuming from "));
}

TEST_CASE("a training may begin with the best weights of an earlier one that went aside") {
  const Training launch;
  const std::string previous = "model.pretrained=output/best.previous.safetensors";
  for (const char* seed : {"train.seed=1", "train.seed=2"})
    REQUIRE(train(launch, {"train.epochs=1", "checkpoint.resume=never", seed}).code == 0);
  const std::string first = launch.folder.read("output/best.previous.safetensors");
  CHECK(train(launch, {"train.epochs=1", "checkpoint.resume=never", previous}).code == 0);
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
}

TEST_CASE("best weights that were removed from output.dir come back from the checkpoint") {
  const Training launch;
  REQUIRE(train(launch).code == 0);
  const std::string best = launch.best();
  fs::remove(launch.folder / "output/best.safetensors");
  const ChildResult more = train(launch, {"train.epochs=9", "optimizer.learning_rate=1e-30"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(contains(more.out, "/output/best.safetensors has the best weights of the checkpoint again\n"));
  CHECK(launch.best() == best);
}

TEST_CASE("a training warns if all its best weights were removed, and keeps the best of the later epochs") {
  const Training launch;
  REQUIRE(train(launch, {"train.epochs=2"}).code == 0);
  fs::remove(launch.folder / "output/best.safetensors");
  fs::remove(launch.folder / ("output/saved/" + saved_training::saved(launch).back() + "/best.safetensors"));
  const ChildResult more = train(launch, {"train.epochs=3"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(contains(more.out, "has the weights of the best epoch so far (loss "));
  CHECK(contains(more.out, "best epoch 2: loss "));
}

TEST_CASE("scores of other test samples do not compete with those of a training that goes on") {
  const Training launch;
  const Words stopping = {"train.epochs=8", "train.early_stopping.patience=8"};
  REQUIRE(train(launch, stopping).code == 0);
  REQUIRE(report_of(launch)["best"]["epoch"] < 7);
  const std::string first = launch.best();
  const ChildResult more = train(launch, {"train.epochs=9", stopping.back(), "data.test.samples=48"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  const std::string why =
      "data.test has other samples, or images of another size, than when the checkpoint was written: ";
  CHECK(contains(more.out, why + "only later epochs count as the best\n"));
  CHECK(contains(more.out, why + "the count of train.early_stopping starts anew\n"));
  CHECK(contains(more.out, "best epoch 8: loss "));
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
}

TEST_CASE("hunt 14: weights go to output.dir where it is now, and not into the folder of another training") {
  const Training launch;
  ChildProcess child({FLEETRUN_BINARY, "job.json", "checkpoint.dir=null", "train.epochs=1000000",
                      "optimizer.learning_rate=0.00001"},  // each epoch is the best one so far
                     launch.options());
  REQUIRE(
      comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "\nbest weights: "); }, 60s));
  const auto next_best_in = [&](const std::string& folder) {
    fs::remove(launch.folder / (folder + "/best.safetensors"));
    return comes_true([&] { return launch.folder.has(folder + "/best.safetensors"); }, 60s);
  };
  fs::rename(launch.folder / "output", launch.folder / "renamed");
  fs::create_directory(launch.folder / "output");
  CHECK(next_best_in("renamed"));
  fs::remove_all(launch.folder / "output");  // the save that was under way may have found the new folder
  fs::create_directory(launch.folder / "output");
  CHECK(next_best_in("renamed"));
  child.send(SIGKILL);
  child.wait();
  CHECK(fs::is_empty(launch.folder / "output"));
}

TEST_CASE("the best weights never replace a file of the user") {
  const Training launch;
  fs::create_directory(launch.folder / "output");
  launch.folder.write("output/best.safetensors", "of the user");
  const ChildResult result = train(launch);
  CHECK(result.code == 73);
  CHECK(contains(result.err, "output/best.safetensors"));
  CHECK(launch.best() == "of the user");
}

TEST_CASE("early stopping ends all ranks after the same step with code 0; going on needs more patience") {
  const Words never_better = {"train.early_stopping.min_delta=100", "train.early_stopping.patience=2",
                              "train.epochs=20"};
  const Training whole, killed;
  const ChildResult result = train(whole, never_better);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const std::string sentence =
      "stopped after epoch 2: loss did not improve by 100 in 2 evaluations; best epoch 0";
  CHECK(contains(result.out, sentence));
  CHECK(report_of(whole)["early_stopping"] == sentence);
  CHECK(report_of(whole)["steps"] == 12);

  const ChildResult same = train(whole, never_better);
  CHECK(same.code == 0);
  CHECK(contains(same.out, "the training is already complete: early stopping ended it"));
  Words patient = never_better;
  patient[1] = "train.early_stopping.patience=3";
  const ChildResult more = train(whole, patient);
  CHECK(contains(more.out,
                 "stopped after epoch 3: loss did not improve by 100 in 3 evaluations; best epoch 0"));

  // The count goes on where it was.
  kill_when(killed, "-step-8", SIGKILL, never_better);
  const ChildResult again = train(killed, never_better);
  CHECK(contains(again.out, "resuming from "));
  CHECK(contains(again.out, sentence));
}

TEST_CASE("after early stopping the report has the loss of the last step, however seldom it is read") {
  const auto report_with = [](const std::string& fetch_every) {
    const Training launch;
    const ChildResult result =
        train(launch, {"train.early_stopping.min_delta=100", "train.early_stopping.patience=2",
                       "train.epochs=20", "train.fetch_every=" + fetch_every});
    REQUIRE_MESSAGE(result.code == 0, result.err);
    return report_of(launch);
  };
  const nlohmann::json often = report_with("1"), seldom = report_with("1000");
  CHECK(often["steps"] == 12);
  CHECK(seldom["steps"] == 12);
  CHECK(seldom["loss"] == often["loss"]);
}

}  // namespace
}  // namespace fleetrun::best_epoch_test
