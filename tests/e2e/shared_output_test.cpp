// Best weights of trainings that share output.dir, or go back to an older checkpoint: each has those of its checkpoint, and none is lost.
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "e2e/best_weights.h"
#include "e2e/saved_training.h"

namespace fleetrun::shared_output_test {
namespace {

namespace fs = std::filesystem;

using best_weights::report_of;
using best_weights::train;
using best_weights::Training;

// As a user does who removes the checkpoints after it.
void go_back_to_third_checkpoint(const Launch& launch) {
  for (const std::string& name : saved_training::saved(launch))
    if (std::stoi(name.substr(0, name.find('-'))) > 3)
      fs::remove_all(launch.folder / ("output/saved/" + name));
}

TEST_CASE("hunt 37: a resume finds its best weights after another training has used the folder") {
  const Training launch;
  REQUIRE(train(launch, {"checkpoint.dir=one"}).code == 0);
  const std::string first = launch.best();
  REQUIRE(train(launch, {"checkpoint.dir=two", "train.seed=2"}).code == 0);
  const std::string second = launch.best();
  REQUIRE(launch.folder.read("output/best.previous.safetensors") == first);
  const ChildResult more =  // at this rate nothing changes any more, so no later epoch is better
      train(launch, {"checkpoint.dir=one", "train.epochs=9", "optimizer.learning_rate=1e-30"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK_MESSAGE(contains(more.out, "/output/best.safetensors has the best weights of the checkpoint again\n"),
                more.out);
  CHECK(launch.best() == first);
  const ChildResult other = train(
      launch, {"checkpoint.dir=two", "train.seed=2", "train.epochs=9", "optimizer.learning_rate=1e-30"});
  REQUIRE_MESSAGE(other.code == 0, other.err);
  CHECK(launch.best() == second);
}

TEST_CASE(
    "hunt 43: however often trainings take turns in a folder, each gets its best weights back, and one file is set aside for each") {
  const Training launch;
  // At this rate nothing changes any more, so no later epoch is better.
  const auto go_on = [&](const char* folder, const char* seed, int epochs) {
    const ChildResult more =
        train(launch, {std::string("checkpoint.dir=") + folder, seed,
                       "train.epochs=" + std::to_string(epochs), "optimizer.learning_rate=1e-30"});
    REQUIRE_MESSAGE(more.code == 0, more.err);
    CHECK_FALSE(contains(more.out, "only later epochs count"));
    return launch.best();
  };
  const std::array<std::pair<const char*, const char*>, 3> trainings = {
      {{"one", "train.seed=1"}, {"two", "train.seed=2"}, {"three", "train.seed=3"}}};
  std::vector<std::string> best;
  for (const auto& [folder, seed] : trainings) {
    REQUIRE(train(launch, {std::string("checkpoint.dir=") + folder, seed}).code == 0);
    best.push_back(launch.best());
  }
  for (const int epochs : {9, 10})
    for (std::size_t i = 0; i < trainings.size(); ++i)
      CHECK(go_on(trainings[i].first, trainings[i].second, epochs) == best[i]);
  for (const char* name : {"best.previous", "best.1", "best.2"})
    CHECK(launch.folder.has(fmt::format("output/{}.safetensors", name)));
  CHECK_FALSE(launch.folder.has("output/best.3.safetensors"));
}

TEST_CASE(
    "hunt 46: a training that goes on from the last checkpoint of another one does not lose that one's best weights") {
  const Training launch;
  REQUIRE(train(launch).code == 0);
  const std::string first = launch.best();
  const std::string fork =
      "checkpoint.resume=" + (launch.folder / ("output/saved/" + saved_training::saved(launch).back()));
  const ChildResult forked =
      train(launch, {fork, "checkpoint.dir=fork", "train.epochs=12", "optimizer.learning_rate=0.01"});
  REQUIRE_MESSAGE(forked.code == 0, forked.err);
  REQUIRE_MESSAGE(launch.best() != first, forked.out);
  const ChildResult more = train(launch, {"train.epochs=9", "optimizer.learning_rate=1e-30"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(launch.best() == first);
}

TEST_CASE(
    "hunt 49: forks of one checkpoint, one after the other, do not lose the best weights of their parent") {
  const Training launch;
  REQUIRE(train(launch).code == 0);
  const std::string first = launch.best();
  const std::string fork =
      "checkpoint.resume=" + (launch.folder / ("output/saved/" + saved_training::saved(launch).back()));
  for (const char* folder : {"checkpoint.dir=one", "checkpoint.dir=two"}) {
    const ChildResult forked =
        train(launch, {fork, folder, "train.epochs=12", "optimizer.learning_rate=0.01"});
    REQUIRE_MESSAGE(forked.code == 0, forked.err);
    REQUIRE_MESSAGE(launch.best() != first, forked.out);
  }
  const ChildResult more = train(launch, {"train.epochs=9", "optimizer.learning_rate=1e-30"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(launch.best() == first);
}

TEST_CASE(
    "hunt 49: a training that went back to an older checkpoint does not report an epoch of the branch that it left") {
  const Training launch;
  const Words slow = {"train.max_steps=48", "train.epochs=null", "checkpoint.keep=100",
                      "optimizer.learning_rate=0.001"};
  REQUIRE(train(launch, slow).code == 0);
  REQUIRE(report_of(launch)["best"]["epoch"] == 11);
  go_back_to_third_checkpoint(launch);
  const ChildResult more =
      train(launch, {"train.max_steps=48", "train.epochs=null", "optimizer.learning_rate=0.0005"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK_MESSAGE(contains(more.out, "earlier best weights: "), more.out);
  CHECK(launch.best() != launch.folder.read("output/best.previous.safetensors"));
}

TEST_CASE("hunt 46: best weights of an epoch that the job does not reach any more go aside") {
  const Training launch;
  REQUIRE(train(launch, {"train.epochs=12", "checkpoint.keep=100", "optimizer.learning_rate=0.001"}).code ==
          0);
  REQUIRE(report_of(launch)["best"]["epoch"] == 11);
  go_back_to_third_checkpoint(launch);
  const ChildResult more = train(launch, {"train.epochs=5", "optimizer.learning_rate=0.001"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(report_of(launch)["best"]["epoch"] == 4);
  CHECK(launch.folder.has("output/best.previous.safetensors"));
}

TEST_CASE("hunt 46: a broken file that has the name of best weights set aside harms no training") {
  const Training launch;
  fs::create_directories(launch.folder / "output");
  launch.folder.write("output/best.3.safetensors", "");
  REQUIRE(train(launch).code == 0);
  const std::string first = launch.best();
  REQUIRE(train(launch, {"checkpoint.dir=two", "train.seed=2"}).code == 0);
  launch.folder.write("output/best.4.safetensors", first.substr(0, first.size() - 10));
  const ChildResult more = train(launch, {"train.epochs=9", "optimizer.learning_rate=1e-30"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(launch.best() == first);
}

TEST_CASE("hunt 46: export replaces no best weights that a training has set aside") {
  const Training launch;
  REQUIRE(train(launch, {"checkpoint.dir=one"}).code == 0);
  const std::string first = launch.best();
  REQUIRE(train(launch, {"checkpoint.dir=two", "train.seed=2"}).code == 0);
  REQUIRE(launch.run_words({"export", "job.json", "output/best.safetensors"}).code == 0);
  CHECK(launch.folder.read("output/best.previous.safetensors") == first);
}

}  // namespace
}  // namespace fleetrun::shared_output_test
