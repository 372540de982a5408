// data.split with the real launcher and worker: a model is worth evaluating only on samples that its training has set aside.
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "e2e/saved_training.h"
#include "runtime/data/image_files.h"

namespace fleetrun::data_split_test {
namespace {

namespace fs = std::filesystem;
using saved_training::kill_when, saved_training::train, saved_training::Training;

TEST_CASE("data.split sets the same samples aside after a resume, and another seed is refused") {
  const Training whole("lenet"), killed("lenet");
  const Words split = {"data.split=0.25"};
  const ChildResult once = train(whole, split);
  REQUIRE_MESSAGE(once.code == 0, once.err);
  CHECK(contains(once.out, "data.split: 72 samples to train on, 24 to evaluate on\n"));
  CHECK(contains(once.out, "[Epoch 5, test] "));
  kill_when(killed, "-step-15", SIGKILL, split);
  REQUIRE(train(killed, split).code == 0);
  CHECK(killed.folder.read("output/model.safetensors") == whole.folder.read("output/model.safetensors"));
  const ChildResult other = train(killed, {"data.split=0.25", "train.seed=9", "train.epochs=7"});
  CHECK(other.code == 78);
  CHECK_MESSAGE(contains(other.err,
                         " was written with train.seed 1, the job has 9: with data.split the model would be "
                         "evaluated on samples that it was trained on\n"),
                other.err);
  const ChildResult more = train(killed, {"data.split=0.5", "train.epochs=7"});
  CHECK(more.code == 78);
  CHECK_MESSAGE(
      contains(more.err,
               " was written with data.split 0.25, the job has 0.5: with data.split the model would be "
               "evaluated on samples that it was trained on\n"),
      more.err);
}

// Pictures of two classes below train/, and a job. data.split sets a fifth of them aside.
struct Pictures : Launch {
  static constexpr int kCount = 27;  // of each class: 22 and 5, and with one more 22 and 6

  Pictures() {
    for (int number = 0; number < kCount; ++number) add(number);
    folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
      "data": {"train": {"format": "image_folder", "path": "train", "image_size": 4}, "split": 0.2, "batch_size": 11},
      "optimizer": {"name": "momentum", "learning_rate": 0.001}, "train": {"epochs": 1},
      "checkpoint": {"dir": "saved"}, "output": {"dir": "out"}})");
  }

  void add(int number) const {
    for (const std::string name : {"a", "b"})
      folder.write(fmt::format("train/{}/{}.png", name, number),
                   runtime::make_png({}, 4, 4, std::string(48, static_cast<char>('0' + number))));
  }

  ChildResult train_on(const Words& keys = {}) const { return train(*this, keys, 1); }
  ChildResult go_on() const { return train_on({"train.epochs=2"}); }
  ChildResult evaluate(const Words& keys = {}) const {
    Words words = {"eval", "--device=cpu", "job.json"};
    words.insert(words.end(), keys.begin(), keys.end());
    return run_words(words);
  }
};

TEST_CASE("with data.split a training goes on only with the samples that it has set aside") {
  const Pictures pictures;
  REQUIRE(pictures.train_on().code == 0);

  pictures.add(Pictures::kCount);
  const ChildResult more = pictures.go_on();
  CHECK(more.code == 78);
  CHECK_MESSAGE(
      contains(more.err,
               " was written with 44 samples to train on and 10 to evaluate on, now there are 44 and "
               "12: with data.split the model would be evaluated on samples that it was trained on\n"),
      more.err);

  for (const std::string name : {"a", "b"})
    fs::remove(pictures.folder / fmt::format("train/{}/{}.png", name, 0));
  const ChildResult others = pictures.go_on();
  CHECK(others.code == 78);
  CHECK_MESSAGE(
      contains(others.err, " was written with other files or labels in data.train: with data.split "),
      others.err);

  pictures.add(0);
  for (const std::string name : {"a", "b"})
    fs::remove(pictures.folder / fmt::format("train/{}/{}.png", name, Pictures::kCount));
  fs::rename(pictures.folder / "train", pictures.folder / "moved");  // the same samples in another place
  const ChildResult same = pictures.train_on({"train.epochs=2", "data.train.path=moved"});
  CHECK_MESSAGE(same.code == 0, same.err);
  CHECK(contains(same.out, "resuming from "));
}

void check_refused(const ChildResult& result, const std::string& why) {
  CHECK(result.code == 78);
  CHECK_MESSAGE(contains(result.err, "out/model.safetensors was trained " + why +
                                         ": with data.split the model would be evaluated on samples that it "
                                         "was trained on\n"),
                result.err);
}

TEST_CASE(
    "with data.split a model is evaluated on the samples that its training set aside, and on no others") {
  const Pictures pictures;
  REQUIRE(pictures.train_on().code == 0);
  const ChildResult same = pictures.evaluate();
  CHECK_MESSAGE(same.code == 0, same.err);
  CHECK(contains(same.out, "train, 10 images of 2 classes\n"));
  CHECK_FALSE(contains(same.err, "warning"));

  check_refused(pictures.evaluate({"train.seed=5"}), "with train.seed 1, the job has 5");
  check_refused(pictures.evaluate({"data.split=0.4"}), "with data.split 0.2, the job has 0.4");
  pictures.add(Pictures::kCount);
  check_refused(pictures.evaluate(),
                "with 44 samples to train on and 10 to evaluate on, now there are 44 and 12");
  REQUIRE(pictures.train_on({"data.split=null", "checkpoint.resume=never"}).code == 0);
  check_refused(pictures.evaluate(), "without data.split, the job has 0.2");
}

TEST_CASE("hunt 37: eval of a model on the folder that its training has split says so") {
  const Pictures pictures;
  REQUIRE(pictures.train_on().code == 0);
  const auto evaluate_on = [&](const std::string& folder) {
    const ChildResult result = pictures.run_words({"eval", "--device=cpu", "out/model.safetensors", folder});
    CHECK_MESSAGE(result.code == 0, result.err);
    return result.err;
  };
  const std::string warning =
      "warning: the model was trained on 44 of these 54 samples (data.split 0.2); fleetrun eval JOB.json evaluates "
      "it on the 10 others\n";
  CHECK_MESSAGE(contains(evaluate_on("train"), warning), evaluate_on("train"));
  fs::rename(pictures.folder / "train", pictures.folder / "moved");
  CHECK(contains(evaluate_on("moved"), warning));
  fs::copy(pictures.folder / "moved", pictures.folder / "other", fs::copy_options::recursive);
  fs::remove(pictures.folder / "other/a/0.png");
  CHECK_FALSE(contains(evaluate_on("other"), "was trained on"));
}

TEST_CASE("eval warns if a model file does not say which samples its training has set aside") {
  const Pictures pictures;
  REQUIRE(pictures.run_words({"export", "job.json", "weights.safetensors"}).code == 0);
  const ChildResult result = pictures.evaluate({"model.pretrained=weights.safetensors"});
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(
      contains(result.err, "warning: " + pictures.folder.path() +
                               "/weights.safetensors does not say which samples its training has set "
                               "aside: with data.split the model may be evaluated on samples that it "
                               "was trained on\n"),
      result.err);
}

}  // namespace
}  // namespace fleetrun::data_split_test
