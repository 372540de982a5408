// fleetrun eval, with models that a training has just made.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "e2e/launcher.h"
#include "runtime/data/image_files.h"
#include "support/leave_out.h"

namespace fleetrun::eval_command_test {
namespace {

// A job with a trained model beside it, and the score of the training's own test pass.
struct TrainedModel : Launch {
  explicit TrainedModel(Words settings = {"model.name=lenet"}) {
    folder.write("job.json", job_text());
    settings.insert(settings.begin(), {"--nproc_per_node=2", "--device=cpu", "job.json"});
    const ChildResult trained = run_words(settings);
    REQUIRE_MESSAGE(trained.code == 0, trained.err);
    test = report()["train"];
  }

  // The quick start's data, half an epoch. One thread: with several, oneDNN's sums depend on their number.
  static std::string job_text() {
    const std::string patterns = FLEETRUN_SOURCE_DIR "/configs/patterns/";
    const auto set = [&](const std::string& name) {
      return nlohmann::json{{"format", "idx"},
                            {"images", patterns + name + "-images.idx.gz"},
                            {"labels", patterns + name + "-labels.idx.gz"},
                            {"channels", 1},
                            {"mean", {120}},
                            {"std", {48}}};
    };
    return nlohmann::json{{"model", {{"name", "lenet"}}},
                          {"data", {{"train", set("train")}, {"test", set("test")}, {"batch_size", 32}}},
                          {"optimizer", {{"learning_rate", 0.02}}},
                          {"train", {{"max_steps", 20}, {"threads", 1}}}}
        .dump();
  }

  nlohmann::json eval(Words words) const {
    words.insert(words.begin(), {"eval", "--json", "--device=cpu"});
    const ChildResult result = run_words(words);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    return nlohmann::json::parse(result.out);
  }

  nlohmann::json test;
};

TEST_CASE("an evaluation has the score of the training's test pass to the bit, on any number of ranks") {
  const TrainedModel model;
  for (const char* ranks : {"1", "2", "3"}) {
    const auto found = model.eval({std::string("--nproc_per_node=") + ranks, "job.json"});
    CHECK(found["loss"] == model.test["test_loss"]);
    CHECK(found["accuracy"] == model.test["test_accuracy"]);
    CHECK(found["images"] == 900);
  }
  CHECK_FALSE(model.folder.has("eval"));
  CHECK(model.folder.has("output/eval/confusion.svg"));
}

TEST_CASE("people get tables, and the files of the report") {
  const TrainedModel model;
  const ChildResult result =
      model.run_words({"eval", "--nproc_per_node=1", "--device=cpu", "--output_dir=here", "job.json"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "test-images.idx.gz, 900 images of 6 classes\n\naccuracy 0."));
  CHECK(contains(result.out, "\nclass          precision  recall      f1  images\n0 "));
  CHECK(contains(result.out, "\nconfusion matrix: "));
  CHECK(contains(result.out, "\nthe 20 images with the highest loss\n"));
  CHECK(contains(result.out, "test-images.idx.gz, image "));
  CHECK(contains(result.out, "/here\n"));
  for (const char* name : {"report.json", "report.txt", "predictions.csv", "confusion.csv", "confusion.svg"})
    CHECK(model.folder.has(std::string("here/") + name));
  CHECK(
      model.run_words({"eval", "--nproc_per_node=1", "--device=cpu", "--output_dir=here", "job.json"}).code ==
      0);
  model.folder.write("here/report.txt", "my own words");
  const ChildResult kept =
      model.run_words({"eval", "--nproc_per_node=1", "--device=cpu", "--output_dir=here", "job.json"});
  CHECK(kept.code == 73);
  CHECK(contains(kept.err, "here/report.txt is in the way: a file that fleetrun did not write\n"));
  CHECK(model.folder.read("here/report.txt") == "my own words");

  model.folder.write("mine/confusion.csv", "my own");
  const ChildResult refused = model.run_words({"eval", "--output_dir=mine", "job.json"});
  CHECK(refused.code != 0);
  CHECK(contains(refused.err,
                 "mine/confusion.csv is in the way: a file that fleetrun did not write\n"
                 "  hint: --output_dir names another folder\n"));
  CHECK(model.folder.read("mine/confusion.csv") == "my own");
}

TEST_CASE("eval leaves files of the user in the log folder alone") {
  const TrainedModel model;
  const Words words = {"eval", "--nproc_per_node=1", "--device=cpu", "--log_dir=logs", "job.json"};
  REQUIRE(model.run_words(words).code == 0);
  REQUIRE(model.run_words(words).code == 0);
  for (const char* name : {"logs/eval.json", "logs/eval.txt"}) {
    const std::string before = model.folder.read(name);
    model.folder.write(name, "my own");
    const ChildResult refused = model.run_words(words);
    CHECK(refused.code == 73);
    CHECK(contains(refused.err, std::string(name) + " is in the way: a file that fleetrun did not write\n"));
    CHECK(model.folder.read(name) == "my own");
    model.folder.write(name, before);
  }
}

TEST_CASE("two ranks say nothing beside the tables") {
  const TrainedModel model;
  const ChildResult result = model.run_words({"eval", "--nproc_per_node=2", "--device=cpu", "job.json"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(result.out.starts_with("model: "), result.out);
  CHECK(result.err.empty());
}

TEST_CASE("eval without a reader ends by SIGPIPE, says nothing and keeps its report") {
  const TrainedModel model;
  ChildOptions options = model.options();
  options.close_stdout = true;
  const ChildResult result =
      run_child({FLEETRUN_BINARY, "eval", "--nproc_per_node=1", "--device=cpu", "job.json"}, options);
  CHECK(result.code == 128 + SIGPIPE);
  CHECK(result.err.empty());
  CHECK(model.folder.has("output/eval/report.txt"));
}

// CIFAR's format, in noise.
std::string noise_batch(int images) {
  std::string content;
  unsigned next = 1;
  for (int i = 0; i < images; ++i) {
    content += static_cast<char>(i % 10);
    for (int byte = 0; byte < 3 * 32 * 32; ++byte)
      content += static_cast<char>((next = next * 1664525 + 1013904223) >> 24U);
  }
  return content;
}

TEST_CASE(
    "a model file, or its folder, says itself how it is evaluated, also without the job and its training data") {
  const Launch launch;
  launch.folder.write("train.bin", noise_batch(100));
  launch.folder.write("test.bin", noise_batch(70));
  launch.folder.write("job.json", R"({
    "model": {"name": "mlp", "hidden": [16]},
    "data": {"train": {"format": "cifar_bin", "path": "train.bin"},
             "test": {"format": "cifar_bin", "path": "test.bin", "mean": [100, 110, 120], "std": [50, 51, 52]}, "batch_size": 32},
    "train": {"epochs": 1, "threads": 1}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  const auto test = launch.report()["train"];
  std::filesystem::rename(launch.folder / "output/model.safetensors", launch.folder / "model.safetensors");
  std::filesystem::remove(launch.folder / "train.bin");
  for (const auto& [ranks, model] : {std::pair("1", "model.safetensors"), std::pair("2", ".")}) {
    const ChildResult result =
        launch.run_words({"eval", "--json", "--device=cpu", std::string("--nproc_per_node=") + ranks, model,
                          "test.bin", "train.threads=1"});
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const auto found = nlohmann::json::parse(result.out);
    CHECK(found["loss"] == test["test_loss"]);
    CHECK(found["worst"].size() == 20);
  }
  CHECK(launch.folder.has("eval/confusion.svg"));

  std::filesystem::create_directory(launch.folder / "000001-step-4");
  std::filesystem::rename(launch.folder / "eval", launch.folder / "earlier");
  std::filesystem::rename(launch.folder / "model.safetensors",
                          launch.folder / "000001-step-4/model.safetensors");
  launch.folder.write("000001-step-4/manifest.json", "{}");
  CHECK(launch.run_words({"eval", "--device=cpu", "000001-step-4", "test.bin"}).code == 0);
  CHECK(launch.folder.has("eval/confusion.svg"));
  CHECK_FALSE(launch.folder.has("000001-step-4/eval"));  // which would keep the checkpoint from being removed
}

TEST_CASE(
    "an evaluation keeps a link to the folder of its report, and leaves no file of its own without a reader") {
  const TrainedModel model;
  std::filesystem::create_directory(model.folder / "real");
  std::filesystem::create_symlink("real", model.folder / "link");
  const ChildResult linked =
      model.run_words({"eval", "--nproc_per_node=1", "--device=cpu", "--output_dir=link", "job.json"});
  REQUIRE_MESSAGE(linked.code == 0, linked.err);
  CHECK(std::filesystem::is_symlink(model.folder / "link"));
  CHECK(model.folder.has("real/report.txt"));

  const Launch launch;
  launch.folder.write("test.bin", noise_batch(10));
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [4]},
    "data": {"train": {"format": "cifar_bin", "path": "test.bin"}}, "train": {"max_steps": 1}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  ChildOptions options = launch.options();
  options.close_stdout = true;
  CHECK(run_child({FLEETRUN_BINARY, "eval", "--nproc_per_node=1", "--device=cpu", "output", "test.bin"},
                  options)
            .code == 128 + SIGPIPE);
  for (const auto& entry : std::filesystem::directory_iterator(launch.folder / "output/eval"))
    CHECK_FALSE(contains(entry.path().filename().string(), "job-"));
}

TEST_CASE(
    "hunt 2: evaluations at the same time each evaluate their own data, and leave one of the two reports") {
  const Launch launch;
  launch.folder.write("100.bin", noise_batch(100));
  launch.folder.write("70.bin", noise_batch(70));
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [4]},
    "data": {"train": {"format": "cifar_bin", "path": "70.bin"}}, "train": {"max_steps": 1}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  for (int round = 0; round < 3; ++round) {
    std::map<int, std::unique_ptr<ChildProcess>> processes;
    for (const int images : {100, 70})
      processes[images] =
          std::make_unique<ChildProcess>(Words{FLEETRUN_BINARY, "eval", "--json", "--nproc_per_node=1",
                                               "--device=cpu", "output", std::to_string(images) + ".bin"},
                                         launch.options());
    for (const auto& [images, process] : processes) {
      const ChildResult result = process->wait();
      REQUIRE_MESSAGE(result.code == 0, result.err);
      CHECK(nlohmann::json::parse(result.out)["images"] == images);
    }
    const auto report = nlohmann::json::parse(launch.folder.read("output/eval/report.json"));
    CHECK(contains(launch.folder.read("output/eval/job.json"),
                   "/" + std::to_string(report["images"].get<int>()) + ".bin"));
  }
  for (const auto& entry : std::filesystem::directory_iterator(launch.folder / "output/eval"))
    CHECK_FALSE(contains(entry.path().filename().string(), "job-"));
}

TEST_CASE("paths beside a model file start at the current folder") {
  const Launch launch;
  for (const char* name : {"a", "b"})
    launch.folder.write(std::string("pictures/") + name + "/1.png",
                        runtime::make_png({}, 4, 4, std::string(48, *name)));
  launch.folder.write("lists/list.txt", "a/1.png 0\nb/1.png 1\n");
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_folder", "path": "pictures", "image_size": 4}, "batch_size": 2},
    "train": {"max_steps": 1}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "job.json"}).code == 0);
  for (const char* root : {"pictures", "\"pictures\""}) {
    const std::string key = std::string("data.test.root=") + root,
                      same = std::string("data.train.root=") + root;
    const ChildResult result = launch.run_words(
        {"eval", "--nproc_per_node=1", "output/model.safetensors", "lists/list.txt", key, same});
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(contains(result.out, "list.txt, 2 images of 2 classes\n"));
  }
}

// The Python of scripts/setup --peers.
std::string peers_python() {
  const char* const chosen = std::getenv("FLEETRUN_PEERS");
  const char* const home = std::getenv("HOME");
  return (chosen != nullptr ? std::string(chosen)
                            : std::string(home == nullptr ? "" : home) + "/.cache/fleetrun/peers") +
         "/bin/python3";
}

TEST_CASE("scikit-learn has the same numbers for the same predictions") {
  const std::string python = peers_python();
  if (!std::filesystem::exists(python) || run_child({python, "-c", "import sklearn"}).code != 0)
    LEAVE_OUT(python + " has no package sklearn; scripts/setup --peers installs it");
  const TrainedModel model;
  model.eval({"--nproc_per_node=2", "job.json"});
  const ChildResult compared = run_child(
      {python, FLEETRUN_SOURCE_DIR "/tests/peers/scripts/check_eval.py", model.folder / "output/eval"});
  CHECK_MESSAGE(compared.code == 0, compared.err);
  CHECK(contains(compared.out, "equal for 900 predictions of 6 classes"));
}

TEST_CASE("an evaluation in which no sample can be read has no score") {
  const Launch launch;
  for (const char* name : {"train", "train/a", "train/b", "test", "test/a", "test/b"})
    std::filesystem::create_directory(launch.folder / name);
  for (const char* name : {"a", "b"}) {
    launch.folder.write(std::string("train/") + name + "/1.png",
                        runtime::make_png({}, 4, 4, std::string(48, *name)));
    launch.folder.write(std::string("test/") + name + "/1.png", "no picture");
  }
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_folder", "path": "train", "image_size": 4}, "batch_size": 2,
             "test": {"format": "image_folder", "path": "test", "image_size": 4}, "bad_sample": "skip"},
    "optimizer": {"name": "momentum", "learning_rate": 0.05}, "train": {"max_steps": 4}, "output": {"dir": "out"}})");
  const std::string words = "nothing to evaluate: none of the 2 samples of data.test can be used";
  const ChildResult trained = launch.run_words({"--nproc_per_node=1", "job.json"});
  CHECK(trained.code == 65);
  CHECK_MESSAGE(contains(trained.err, words), trained.err);
  REQUIRE(launch.run_words({"--nproc_per_node=1", "job.json", "data.test=null"}).code == 0);
  const ChildResult evaluated =
      launch.run_words({"eval", "job.json", "model.pretrained=out/model.safetensors"});
  CHECK(evaluated.code == 65);
  CHECK_MESSAGE(contains(evaluated.err, words), evaluated.err);
}

TEST_CASE("a warning about a sample goes to stderr, and the tables to stdout") {
  const Launch launch;
  for (const char* name : {"train", "train/a", "train/b"})
    std::filesystem::create_directory(launch.folder / name);
  for (const char* name : {"a", "b"})
    launch.folder.write(std::string("train/") + name + "/1.png",
                        runtime::make_png({}, 4, 4, std::string(48, *name)));
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_folder", "path": "train", "image_size": 4}, "batch_size": 2},
    "optimizer": {"name": "momentum", "learning_rate": 0.05}, "train": {"max_steps": 1}, "output": {"dir": "out"}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  for (const char* name : {"train/b/2.png", "train/b/3.png"}) launch.folder.write(name, "no picture");
  for (const char* ranks : {"--nproc_per_node=1", "--nproc_per_node=2"}) {
    const ChildResult result = launch.run_words(
        {"eval", ranks, "--device=cpu", "out/model.safetensors", "train", "data.bad_sample=skip"});
    REQUIRE_MESSAGE(result.code == 0, result.err);
    CHECK_MESSAGE(result.out.starts_with("model: "), result.out);
    CHECK_MESSAGE(contains(result.out, "/train, 2 images of 2 classes, 2 samples skipped\n"), result.out);
    for (const char* name : {"2.png", "3.png"})
      CHECK_MESSAGE(contains(result.err, std::string("/train/b/") + name), result.err);
  }
}

TEST_CASE("a model without names of classes takes the labels of folders by their order, and says so") {
  const Launch launch;
  for (const char* name : {"set", "set/a", "set/b", "less", "less/b"})
    std::filesystem::create_directory(launch.folder / name);
  for (const char* name : {"set/a/1.png", "set/b/1.png", "less/b/1.png"})
    launch.folder.write(name, runtime::make_png({}, 4, 4, std::string(48, name[4])));
  launch.folder.write("list.txt", "set/a/1.png 0\nset/b/1.png 1\n");
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_list", "list": "list.txt", "root": ".", "image_size": 4}, "batch_size": 2},
    "optimizer": {"name": "momentum", "learning_rate": 0.05}, "train": {"max_steps": 1}, "output": {"dir": "out"}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  const auto eval = [&](const char* folder) {
    return launch.run_words({"eval", "--nproc_per_node=1", "--device=cpu", "out/model.safetensors", folder});
  };
  CHECK_MESSAGE(contains(eval("set").err, "in the order of the names, so label 0 is a and label 1 is b\n"),
                eval("set").err);
  CHECK(eval("less").code == 65);
  CHECK_MESSAGE(contains(eval("less").err, "/less has 1 class, the model 2 without names"), eval("less").err);
}

TEST_CASE("hunt 17: eval of a model names a folder that is none of its classes") {
  const Launch launch;
  for (const char* name : {"set", "set/a", "set/b", "more", "more/a", "more/b", "more/c"})
    std::filesystem::create_directory(launch.folder / name);
  for (const char* name : {"set/a/1.png", "set/b/1.png", "more/a/1.png", "more/b/1.png", "more/c/1.png"})
    launch.folder.write(name, runtime::make_png({}, 4, 4, std::string(48, name[4])));
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_folder", "path": "set", "image_size": 4}, "batch_size": 2},
    "train": {"max_steps": 1}, "output": {"dir": "out"}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  const ChildResult result =
      launch.run_words({"eval", "--nproc_per_node=1", "--device=cpu", "out/model.safetensors", "more"});
  CHECK(result.code == 65);
  CHECK_MESSAGE(contains(result.err, "/more/c: the training data has no class c"), result.err);
}

TEST_CASE("eval warns of pixels that the job scales otherwise than the training of the model") {
  const TrainedModel model;
  const Words words = {"eval", "--nproc_per_node=2", "--device=cpu", "job.json"};
  CHECK_FALSE(contains(model.run_words(words).err, "warning"));
  Words others = words;
  others.insert(others.end(), {"data.test.mean=[0]", "data.test.std=[255]"});
  const ChildResult result = model.run_words(others);
  CHECK_MESSAGE(result.code == 0, result.err);
  for (const char* line : {"warning: data.test.mean is [0], and was [120] when the model was trained\n",
                           "warning: data.test.std is [255], and was [48] when the model was trained\n"})
    CHECK_MESSAGE(contains(result.err, line), result.err);
}

TEST_CASE("hunt 20: the hint about the size of images names the data set that the job has") {
  const Launch launch;
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(launch.folder / (std::string("set/") + name));
    for (int i = 0; i < 4; ++i)
      launch.folder.write(fmt::format("set/{}/{}.png", name, i),
                          runtime::make_png({}, 4, 4, std::string(48, *name)));
  }
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_folder", "path": "set"}, "split": 0.3, "batch_size": 2},
    "train": {"max_steps": 1}, "output": {"dir": "out"}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  const ChildResult result =
      launch.run_words({"eval", "--nproc_per_node=1", "--device=cpu", "job.json", "data.train.image_size=8"});
  CHECK(result.code == 65);
  CHECK_MESSAGE(contains(result.err, "hint: data.train.image_size=4 data.train.channels=3 makes them so"),
                result.err);
}

// Two classes of pictures of one size.
void write_pictures(const Launch& launch, const std::string& folder, int height, int width) {
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 4; ++i)
      launch.folder.write(fmt::format("{}/{}/{}.png", folder, name, i),
                          runtime::make_png({}, width, height, std::string(height * width * 3, *name)));
}

TEST_CASE(
    "hunt 100: eval of a model takes images that are not square, and says which others it cannot take") {
  const Launch launch;
  write_pictures(launch, "set", 4, 6);
  write_pictures(launch, "others", 6, 4);
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_folder", "path": "set"}, "batch_size": 2},
    "train": {"max_steps": 1}, "output": {"dir": "out"}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  const Words words = {"eval", "--nproc_per_node=1", "--device=cpu", "out"};
  Words same = words, others = words;
  same.emplace_back("set");
  others.emplace_back("others");
  CHECK_MESSAGE(contains(launch.run_words(same).out, "set, 8 images of 2 classes\n"),
                launch.run_words(same).err);
  const ChildResult result = launch.run_words(others);
  CHECK(result.code == 65);
  CHECK_MESSAGE(contains(result.err, "are [3,6,4], and the model takes [3,4,6]\n"), result.err);
  CHECK(contains(result.err, "hint: image_size makes squares only, so all images must have 6x4 pixels\n"));
  Words grey = same;
  grey.insert(grey.end(),
              {"data.test.channels=1", "data.train.channels=1", "data.test.mean=[0]", "data.train.mean=[0]",
               "data.test.std=[1]", "data.train.std=[1]", "model.input_shape=null"});
  CHECK_MESSAGE(contains(launch.run_words(grey).err, "hint: data.test.channels=3 makes them so\n"),
                launch.run_words(grey).err);
}

TEST_CASE("hunt 103: a checkpoint without the averages that its training evaluated says so") {
  const Launch launch;
  write_pictures(launch, "set", 4, 4);
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_folder", "path": "set"}, "batch_size": 2},
    "optimizer": {"ema_decay": 0.9, "ema_evaluate": true},
    "train": {"max_steps": 2}, "output": {"dir": "out"}, "checkpoint": {"dir": "saved", "every_steps": 1}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  std::string checkpoint;
  for (const auto& entry : std::filesystem::directory_iterator(launch.folder / "out/saved"))
    if (contains(entry.path().filename().string(), "-step-")) checkpoint = entry.path();
  const std::string warning = "the training evaluated moving averages (optimizer.ema_evaluate)";
  for (const Words& command : {Words{"eval", "--nproc_per_node=1", "--device=cpu"}, Words{"predict"}}) {
    Words with = command, without = command;
    with.insert(with.end(), {checkpoint, command.front() == "eval" ? "set" : "set/a/0.png"});
    without.insert(without.end(), {"out", with.back()});
    const ChildResult warned = launch.run_words(with), silent = launch.run_words(without);
    CHECK(warned.code == 0);
    CHECK_MESSAGE(contains(warned.err, warning), warned.err);
    CHECK(silent.code == 0);
    CHECK_FALSE(contains(silent.err, warning));
  }
}

TEST_CASE("hunt 100: a stray file beside the folders of classes does not make a folder one of CIFAR") {
  const Launch launch;
  write_pictures(launch, "set", 4, 4);
  launch.folder.write("job.json", R"({"model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "image_folder", "path": "set"}, "batch_size": 2},
    "train": {"max_steps": 1}, "output": {"dir": "out"}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "--device=cpu", "job.json"}).code == 0);
  launch.folder.write("set/features.bin", "not CIFAR");
  const ChildResult result = launch.run_words({"eval", "--nproc_per_node=1", "--device=cpu", "out", "set"});
  CHECK_MESSAGE(contains(result.out, "set, 8 images of 2 classes\n"), result.err);
}

TEST_CASE("eval says what it lacks") {
  const Launch launch;
  launch.folder.write("job.json", TrainedModel::job_text());
  CHECK(launch.run_words({"eval"}).err ==
        "fleetrun: error: found no word, wanted a job file, or a model file and its data\n"
        "  hint: fleetrun eval --help\n");
  CHECK(contains(launch.run_words({"eval", "job.json"}).err, "found no model to evaluate: "));
  CHECK(contains(launch.run_words({"eval", "job.json", "data.test=null"}).err,
                 "job.json has neither data.test nor data.split"));
  CHECK(contains(launch.run_words({"eval", "a.safetensors"}).err,
                 "found the model a.safetensors without data"));
  CHECK(
      contains(launch.run_words({"eval", "a.safetensors", "data"}).err, "reading the model a.safetensors: "));
  launch.folder.write("a.safetensors", "no model");
  CHECK(contains(launch.run_words({"eval", "a.safetensors", "data"}).err,
                 "a.safetensors: found no header of a safetensors file, wanted a model file of fleetrun"));
  launch.folder.write("a.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  CHECK(contains(launch.run_words({"eval", "a.safetensors", "data"}).err,
                 "a.safetensors: found no metadata model.input_shape, wanted a model file of fleetrun"));
  launch.folder.write("output/note", "");
  CHECK(
      contains(launch.run_words({"eval", "output", "data"}).err,
               "the folder output has no model.safetensors\n  hint: wanted a model file, a checkpoint, or "));
  CHECK_FALSE(launch.folder.has("eval"));
}

}  // namespace
}  // namespace fleetrun::eval_command_test
