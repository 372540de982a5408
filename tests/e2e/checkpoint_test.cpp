// Checkpoints with the real launcher and the real worker: what was interrupted ends as if it had not been.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>

#include <fmt/format.h>

#include "base/system/unique_fd.h"
#include "e2e/saved_training.h"
#include "runtime/data/image_files.h"
#include "support/leave_out.h"
#include "support/soak.h"

namespace fleetrun::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using saved_training::kill_when, saved_training::newest, saved_training::saved, saved_training::train,
    saved_training::Training;

TEST_CASE("a training that is killed and started again ends bit by bit as one that was not") {
  for (const std::string model : {"lenet", "resnet20"}) {
    CAPTURE(model);
    const Training whole(model), killed(model);
    const Words dropout = {model == "lenet" ? "model.dropout=0.3" : "model.dropout=0"};
    REQUIRE(train(whole, dropout).code == 0);
    kill_when(killed, "-step-18", SIGKILL, dropout);
    const ChildResult again = train(killed, dropout);
    REQUIRE_MESSAGE(again.code == 0, again.err);
    CHECK(contains(again.out, "resuming from "));
    const auto expected = newest(whole), found = newest(killed);
    CHECK(expected.size() == 3);
    for (const auto& file : expected) {
      CAPTURE(file.first);
      CHECK(found.at(file.first) == file.second);
    }
    CHECK(killed.folder.read("output/model.safetensors") == whole.folder.read("output/model.safetensors"));
  }
}

TEST_CASE(
    "a training that is killed between two updates of merged gradients and started again ends bit by bit the same") {
  const Training whole("lenet"), killed("lenet");
  const Words merging = {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=4",
                         "strategy.fp16_allreduce=true", "strategy.lars=true",
                         "optimizer.ema_decay=0.9",      "optimizer.ema_evaluate=true"};
  REQUIRE(train(whole, merging).code == 0);
  kill_when(killed, "-step-18", SIGKILL, merging);
  CHECK(contains(killed.folder.read("output/saved/" + saved(killed).back() + "/manifest.json"),
                 "merged_gradients.safetensors"));
  const ChildResult again = train(killed, merging);
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK(contains(again.out, "resuming from "));
  CHECK(newest(killed) == newest(whole));
  CHECK(killed.folder.read("output/model.safetensors") == whole.folder.read("output/model.safetensors"));
}

TEST_CASE("owners of parameters save what all ranks would, and get their states back when it goes on") {
  const Training all("lenet"), owners("lenet"), killed("lenet");
  const Words reduce = {"strategy.build_strategy.reduce_strategy=Reduce",
                        "strategy.build_strategy.fuse_broadcast_ops=true"};
  REQUIRE(train(all).code == 0);
  const ChildResult whole = train(owners, reduce);
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  CHECK(contains(whole.out, "Find broadcast operators: 8, fused into 1."));
  CHECK(newest(owners) == newest(all));
  kill_when(killed, "-step-18", SIGKILL, reduce);
  REQUIRE(train(killed, reduce).code == 0);
  CHECK(newest(killed) == newest(all));
}

TEST_CASE("num_iteration_per_run: what is seen comes once in so many steps, what is learned is the same") {
  const Training singly("lenet"), in_runs("lenet");
  const Words every_step = {"checkpoint.every_steps=1", "checkpoint.every_epochs=0", "checkpoint.keep=20",
                            "train.epochs=2"};
  REQUIRE(train(singly, every_step).code == 0);
  Words of_four = every_step;
  of_four.emplace_back("strategy.execution_strategy.num_iteration_per_run=4");
  const ChildResult runs = train(in_runs, of_four);
  REQUIRE_MESSAGE(runs.code == 0, runs.err);
  CHECK(in_runs.folder.read("output/model.safetensors") == singly.folder.read("output/model.safetensors"));
  for (const std::string batch : {"batch 3]", "batch 5]"}) CHECK(contains(runs.out, "[Epoch 1, " + batch));
  for (const std::string batch : {"batch 0]", "batch 1]", "batch 2]", "batch 4]"})
    CHECK_FALSE(contains(runs.out, "[Epoch 1, " + batch));
  std::vector<std::string> steps;
  for (const std::string& name : saved(in_runs)) steps.push_back(name.substr(name.find("step-")));
  CHECK(steps == std::vector<std::string>{"step-4", "step-6", "step-10", "step-12"});
}

TEST_CASE("checkpoints in mid-epoch go on in mid-epoch, and only the newest are kept") {
  const Training whole("lenet"), killed("lenet");
  const Words often = {"checkpoint.every_steps=2", "checkpoint.keep=2"};
  REQUIRE(train(whole, often).code == 0);
  CHECK(saved(whole) == Words{"000017-step-34", "000018-step-36"});
  kill_when(killed, "-step-20", SIGKILL, often);
  REQUIRE(train(killed, often).code == 0);
  CHECK(newest(killed) == newest(whole));
}

TEST_CASE("the command of a finished training, given again, keeps the weights of the training before it") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.max_steps=2", "checkpoint.dir=null"}).code == 0);
  const std::string first = launch.folder.read("output/model.safetensors");
  REQUIRE(train(launch, {"train.max_steps=6"}).code == 0);
  REQUIRE(launch.folder.read("output/model.previous.safetensors") == first);
  const ChildResult again = train(launch, {"train.max_steps=6"});
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK(contains(again.out, "the training is already complete"));
  CHECK(contains(again.out, "weights: " + launch.folder.path() + "/output/model.safetensors"));
  CHECK(launch.folder.read("output/model.previous.safetensors") == first);
}

TEST_CASE(
    "hunt 118: a finished training, started again with another job, keeps what is said about its weights") {
  for (const bool averages : {false, true}) {
    CAPTURE(averages);
    const Training launch("lenet");
    Words words = {"train.max_steps=6"};
    if (averages) words.insert(words.end(), {"optimizer.ema_decay=0.9", "optimizer.ema_evaluate=true"});
    REQUIRE(train(launch, words).code == 0);
    const std::string weights = launch.folder.read("output/model.safetensors");
    words.emplace_back("data.train.augment=crop_flip");
    const ChildResult other = train(launch, words);
    REQUIRE_MESSAGE(other.code == 0, other.err);
    CHECK(launch.folder.read("output/model.safetensors") == weights);
    CHECK_FALSE(launch.folder.has("output/model.previous.safetensors"));
    std::filesystem::remove(launch.folder / "output/model.safetensors");
    REQUIRE(train(launch, words).code == 0);
    CHECK(launch.folder.read("output/model.safetensors") == weights);
  }
}

TEST_CASE("a job that is shorter than its checkpoint trains nothing, whatever counts its steps") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.max_steps=6"}).code == 0);
  const Words before = saved(launch);
  const ChildResult shorter = train(launch, {"train.max_steps=5"});
  CHECK_MESSAGE(shorter.code == 0, shorter.err);
  CHECK(contains(shorter.out,
                 "the training is already complete: the checkpoint has 6 steps, and the job ends after 5"));
  CHECK_FALSE(contains(shorter.out, "trained "));
  CHECK_FALSE(contains(launch.folder.read("log/train.json"), R"("loss")"));
  const ChildResult alone = train(launch, {"train.max_steps=6"}, 1);
  CHECK(alone.code == 0);
  CHECK(contains(alone.out,
                 "the training is already complete: the checkpoint has 6 steps, and the job ends after 6"));
  CHECK(saved(launch) == before);
}

TEST_CASE(
    "row 7: max_steps counts the steps of the whole training, whatever the number of ranks in between") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.max_steps=10"}).code == 0);
  const ChildResult alone = train(launch, {"train.max_steps=20"}, 1);
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  CHECK(contains(alone.out, "resuming from "));
  CHECK(contains(alone.out, ": epoch 1, batch 8 (step 10)"));
  CHECK(contains(alone.out, "20 steps on 1 rank in "));
  CHECK(saved(launch).back().ends_with("-step-20"));
  const ChildResult four = train(launch, {"train.max_steps=25"}, 4);
  REQUIRE_MESSAGE(four.code == 0, four.err);
  CHECK(contains(four.out, "(step 20)"));
  CHECK(saved(launch).back().ends_with("-step-25"));
}

TEST_CASE("a warm-up that a change of ranks sets back has a warning with both learning rates") {
  const Training launch("lenet");
  const std::string rate = R"(optimizer.learning_rate={"base":0.1,"warmup_steps":40})";
  REQUIRE(train(launch, {"train.epochs=2", rate}, 1).code == 0);
  const ChildResult two = train(launch, {"train.epochs=10", rate}, 2);
  REQUIRE_MESSAGE(two.code == 0, two.err);
  CHECK_MESSAGE(
      contains(two.out,
               "warning: the learning rate goes on with 0.0325 instead of 0.0625: optimizer.learning_rate "
               "counts steps, and the 24 steps of the checkpoint count as 12 now"),
      two.out);
  CHECK(contains(launch.folder.read("log/history.csv"), "\n13,2,"));
}

TEST_CASE("a training over more samples than before goes on with them, and keeps its end") {
  const Training launch("lenet");
  const Words at_end = {"checkpoint.every_epochs=0", "train.epochs=1"};
  REQUIRE(train(launch, at_end).code == 0);
  const ChildResult more =
      train(launch, {"checkpoint.every_epochs=0", "train.epochs=2", "data.train.samples=128"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(
      contains(more.out, "warning: data.train has 128 samples, and had 96 when the checkpoint was written"));
  CHECK(contains(more.out, "[Epoch 1, batch 7]"));
  CHECK(saved(launch).back().ends_with("-step-16"));
}

TEST_CASE("what is reported after a checkpoint has a loss, though none is due to be fetched") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.max_steps=4"}).code == 0);
  const ChildResult again = train(launch, {"train.max_steps=6", "train.fetch_every=100"});
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK(contains(again.out, "[Epoch 0, batch 4] loss: "));
  CHECK_FALSE(contains(again.out, "loss: 0.00000"));
}

TEST_CASE(
    "a bad checkpoint is reported and set aside for the one before; when all are bad the run ends with 65") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.epochs=2"}).code == 0);
  const Words names = saved(launch);
  REQUIRE(names.size() == 2);
  const auto damage = [&](const std::string& name) {
    const std::string file = "output/saved/" + name + "/model.safetensors";
    launch.folder.write(file, launch.folder.read(file) + "x");
  };
  damage(names[1]);
  const ChildResult result = train(launch, {"train.epochs=3"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "warning: a checkpoint cannot be used: "));
  CHECK(contains(result.out, "resuming from "));
  CHECK(contains(result.out, names[0] + ": epoch 1, batch 0 (step 6)"));
  CHECK(std::count(names.begin(), names.end(), names[1]) == 1);
  const Words left = saved(launch);
  CHECK(std::count(left.begin(), left.end(), names[1] + ".bad") == 1);
  for (const std::string& name : left)
    if (!name.ends_with(".bad")) damage(name);
  const ChildResult none = train(launch, {"train.epochs=4"});
  CHECK(none.code == 65);
  CHECK(contains(none.err, "none of the 3 checkpoints in "));
  CHECK(contains(none.err, "hint: checkpoint.resume=never"));
  CHECK(train(launch, {"train.epochs=1", "checkpoint.resume=never"}).code == 0);
}

TEST_CASE("a checkpoint that a newer fleetrun wrote ends the run, and nothing is set aside") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.epochs=2"}).code == 0);
  const Words names = saved(launch);
  launch.folder.write("output/saved/" + names.back() + "/manifest.json", R"({"checkpoint": {"version": 2}})");
  const ChildResult result = train(launch, {"train.epochs=3"});
  CHECK(result.code == 76);
  CHECK(contains(result.err, "manifest.json: a checkpoint of version 2, this build reads version 1"));
  CHECK(saved(launch) == names);
}

TEST_CASE("a folder that cannot be made ends the run at once, though other ranks wait for rank 0") {
  const Training launch("lenet");
  fs::create_directory(launch.folder / "output");
  launch.folder.write("output/saved", "of the user");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "--grace=30", "job.json"});
  CHECK(result.code == 73);
  CHECK(result.seconds < 15);
}

TEST_CASE("a checkpoint of another model is named, one of another world size is gone on from") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.epochs=2"}).code == 0);
  const ChildResult other = train(launch, {"model.name=mlp"});
  CHECK(other.code == 65);
  CHECK(contains(other.err, "is of model lenet with optimizer momentum, the job has mlp with momentum"));
  const ChildResult wider = train(launch, {"model.class_dim=7"});
  CHECK(wider.code == 65);
  CHECK(contains(wider.err, "is [4,512], wanted [7,512]"));
  CHECK(contains(wider.err, "hint: checkpoint.resume=never model.pretrained="));  // hunt 73
  const ChildResult alone = train(launch, {"train.epochs=3"}, 1);
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  CHECK(contains(alone.out, "epoch 2, batch 0 (step 24)"));
}

TEST_CASE("hunt 17: a resumed training keeps the size of its images, unless the job names another one") {
  const Launch launch;
  const auto write_image = [&](const std::string& name, int side) {
    const std::string pixels(static_cast<std::size_t>(side * side) * 3, 'x');
    launch.folder.write("train/" + name, runtime::make_png({}, side, side, pixels));
  };
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(launch.folder / (std::string("train/") + name));
    write_image(std::string(name) + "/1.png", 8);
  }
  launch.folder.write("job.json", R"({"model": {"name": "resnet20"},
    "data": {"train": {"format": "image_folder", "path": "train"}, "batch_size": 1}, "train": {"epochs": 1},
    "checkpoint": {"dir": "saved"}})");
  REQUIRE(train(launch, {}, 1).code == 0);
  write_image("b/2.png", 9);
  const ChildResult odd = train(launch, {"train.epochs=2"}, 1);
  CHECK(odd.code == 65);
  CHECK_MESSAGE(
      contains(odd.err, "the images of data.train are 224x224 pixels, and were 8x8 when checkpoint "),
      odd.err);
  CHECK_MESSAGE(contains(odd.err, "data.train.image_size=8 makes them so again"), odd.err);
  const ChildResult same = train(launch, {"train.epochs=2", "data.train.image_size=8"}, 1);
  CHECK_MESSAGE(same.code == 0, same.err);
  CHECK(!contains(same.out, "pixels, and were"));
  const ChildResult other = train(launch, {"train.epochs=3", "data.train.image_size=16"}, 1);
  CHECK_MESSAGE(other.code == 0, other.err);
  CHECK_MESSAGE(
      contains(
          other.out,
          "warning: the images of data.train are 16x16 pixels, and were 8x8 when the checkpoint was written"),
      other.out);
}

TEST_CASE("a checkpoint whose classes have other names is refused, and other means of the pixels are told") {
  const Launch launch;
  for (const char* name : {"a", "b", "c"}) {
    std::filesystem::create_directories(launch.folder / (std::string("train/") + name));
    launch.folder.write(std::string("train/") + name + "/1.png",
                        runtime::make_png({}, 4, 4, std::string(48, *name)));
  }
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8], "class_dim": 5},
    "data": {"train": {"format": "image_folder", "path": "train", "image_size": 4}, "batch_size": 1},
    "optimizer": {"name": "momentum", "learning_rate": 0.05}, "train": {"epochs": 2},
    "checkpoint": {"dir": "saved"}})");
  REQUIRE(train(launch, {}, 1).code == 0);
  const ChildResult other_mean = train(launch, {"data.train.mean=[1,2,3]", "train.epochs=3"}, 1);
  CHECK_MESSAGE(other_mean.code == 0, other_mean.err);
  CHECK_MESSAGE(contains(other_mean.out, "warning: data.train.mean is [1, 2, 3], and was ["), other_mean.out);
  const ChildResult other_test =
      train(launch,
            {R"(data.test={"format": "image_folder", "path": "train", "image_size": 4, "mean": [7, 7, 7]})",
             "train.epochs=3"},
            1);
  CHECK_MESSAGE(contains(other_test.out, "warning: data.test.mean is [7, 7, 7], and was ["), other_test.out);
  std::filesystem::rename(launch.folder / "train/b", launch.folder / "train/d");
  const ChildResult renamed = train(launch, {"train.epochs=4"}, 1);
  CHECK(renamed.code == 65);
  CHECK_MESSAGE(contains(renamed.err, " is b, of data.train c; the names must agree\n"), renamed.err);
}

TEST_CASE("hunt 20: a training goes on with names instead of numbers only if these are the same labels") {
  const Launch launch;
  std::string list;
  for (int label = 0; label < 11; ++label) {
    const std::string folder = "train/" + std::to_string(label);
    std::filesystem::create_directories(launch.folder / folder);
    launch.folder.write(folder + "/1.png",
                        runtime::make_png({}, 4, 4, std::string(48, static_cast<char>('a' + label))));
    list += folder + "/1.png " + std::to_string(label) + "\n";
  }
  launch.folder.write("list.txt", list);
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_list", "list": "list.txt", "root": "."}, "batch_size": 1}, "train": {"epochs": 1},
    "checkpoint": {"dir": "saved"}})");
  const std::string folders = R"(data.train={"format": "image_folder", "path": "train"})";
  const ChildResult by_numbers = train(launch, {}, 1);
  REQUIRE_MESSAGE(by_numbers.code == 0, by_numbers.err);
  const ChildResult sorted_otherwise = train(launch, {"train.epochs=2", folders}, 1);
  CHECK(sorted_otherwise.code == 65);
  CHECK_MESSAGE(contains(sorted_otherwise.err,
                         "fleetrun sorts class names as text, so 10 has label 2; data.train has "
                         "names of classes, and checkpoint "),
                sorted_otherwise.err);
  std::filesystem::rename(launch.folder / "train/10", launch.folder / "train/x");
  const ChildResult other_names = train(launch, {"train.epochs=2", folders}, 1);
  CHECK_MESSAGE(other_names.code == 0, other_names.err);
  CHECK_MESSAGE(contains(other_names.out, "in the order of the names, so label 0 is 0 and label 10 is x\n"),
                other_names.out);
}

// Of the newest complete checkpoint; 0 without any. Nothing but complete ones has such a name.
long newest_step(const Training& training) {
  const Words names = saved(training);
  long step = 0;
  for (const std::string& name : names) {
    if (name.starts_with('.')) continue;
    CHECK(training.folder.has("output/saved/" + name + "/manifest.json"));
    step = std::stol(name.substr(name.rfind('-') + 1));
  }
  return step;
}

TEST_CASE(
    "killed at random moments, many in the middle of a save, it always goes on from the newest checkpoint") {
  constexpr int kEvery = 2;
  const int kills = testing::soak_count(12);
  const Training training("lenet");
  const Words command = {FLEETRUN_BINARY, "--nproc_per_node=2", "job.json", "train.epochs=1000000",
                         "checkpoint.every_steps=" + std::to_string(kEvery)};
  std::minstd_rand random(7);
  int in_a_save = 0;
  for (int kill = 0; kill < kills; ++kill) {
    CAPTURE(kill);
    const long before = newest_step(training);
    fs::remove(training.folder / "log/workerlog.0");
    ChildProcess child(command, training.options());
    const std::string log = "log/workerlog.0";
    REQUIRE(comes_true([&] { return contains(training.folder.read(log), "[Epoch "); }, 60s));
    const auto moment = std::chrono::steady_clock::now() + std::chrono::milliseconds(random() % 400);
    comes_true([&] { return std::chrono::steady_clock::now() >= moment; }, 1s);
    child.send(SIGKILL);
    child.wait();
    REQUIRE(comes_true([&] { return workers_in(training.folder).empty(); }, 10s));
    const std::string text = training.folder.read(log);
    if (before > 0) CHECK_MESSAGE(contains(text, "(step " + std::to_string(before) + ")"), text);
    const auto steps = std::count(text.begin(), text.end(), '[');  // begun, a line each
    CHECK(newest_step(training) >= before + steps - 1 - 2 * kEvery);
    for (const std::string& name : saved(training)) in_a_save += name.starts_with(".partial") ? 1 : 0;
  }
  MESSAGE("killed ", kills, " times, ", in_a_save, " times in the middle of a save; step ",
          newest_step(training));
}

}  // namespace
}  // namespace fleetrun::checkpoint_test
