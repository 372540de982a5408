// fleetrun predict: the model file of a training, and images of any kind.
#include <algorithm>
#include <sstream>

#include "e2e/launcher.h"
#include "runtime/data/image_files.h"

namespace fleetrun::predict_command_test {
namespace {

const char* const kJob = R"({
"model": {"name": "mlp", "hidden": [8]},
"data": {"train": {"format": "image_folder", "path": "train", "image_size": 4}, "batch_size": 4},
"optimizer": {"name": "momentum", "learning_rate": 0.05},
"train": {"max_steps": 40}, "output": {"dir": "out"}
})";

// Of one colour, with its brightness.
std::string png_of(int channel, int brightness) {
  std::string rows;
  for (int i = 0; i < 16; ++i)
    for (int c = 0; c < 3; ++c) rows += static_cast<char>(c == channel ? brightness : 10);
  return runtime::make_png({}, 4, 4, rows);
}

// A model that knows red from blue, and pictures of both.
struct Trained : Launch {
  Trained() {
    for (const char* below : {"/train", "/train/blue", "/train/red", "/new", "/new/more"})
      std::filesystem::create_directory(folder.path() + below);
    for (int i = 0; i < 8; ++i) {
      folder.write(fmt_name("train/red", i), png_of(0, 180 + i));
      folder.write(fmt_name("train/blue", i), png_of(2, 180 + i));
    }
    folder.write("new/1.png", png_of(0, 220));
    folder.write("new/2.png", png_of(2, 220));
    folder.write("new/more/3.png", png_of(0, 170));
    folder.write("job.json", kJob);
    const ChildResult result = run_words({"--nproc_per_node=1", "--device=cpu", "job.json"});
    REQUIRE_MESSAGE(result.code == 0, result.err);
  }
  static std::string fmt_name(const std::string& folder, int number) {
    return folder + "/" + std::to_string(number) + ".png";
  }
  ChildResult predict(Words words) const {
    words.insert(words.begin(), "predict");
    return run_words(words);
  }
  ChildResult predict_lines(const std::string& flags, const std::string& lines) const {
    folder.write("lines", lines);
    return run_child({"/bin/sh", "-c", FLEETRUN_BINARY " predict " + flags + " - < lines"}, options());
  }
};

std::vector<nlohmann::json> objects_in(const std::string& lines) {
  std::vector<nlohmann::json> objects;
  std::istringstream each(lines);
  for (std::string line; std::getline(each, line);) objects.push_back(nlohmann::json::parse(line));
  return objects;
}

TEST_CASE(
    "predict names the classes of single images, of folders and of the paths on stdin, in their order") {
  const Trained trained;
  const std::string model = "out/model.safetensors";

  const ChildResult one = trained.predict({model, "new/1.png"});
  CHECK_MESSAGE(one.code == 0, one.err);
  CHECK(one.err.empty());
  CHECK(std::count(one.out.begin(), one.out.end(), '\n') == 2);  // both classes of a single image
  CHECK(one.out.starts_with("red   "));

  const ChildResult folder = trained.predict({"--json", "out", "new"});
  REQUIRE_MESSAGE(folder.code == 0, folder.err);
  const auto objects = objects_in(folder.out);
  REQUIRE(objects.size() == 3);
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"new/1.png", "red"}, {"new/2.png", "blue"}, {"new/more/3.png", "red"}};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(objects[i]["file"] == wanted[i].first);
    CHECK(objects[i]["predictions"].size() == 1);
    CHECK(objects[i]["predictions"][0]["class"] == wanted[i].second);
  }

  const ChildResult lines = trained.predict_lines("--csv --top=2 " + model, "new/2.png\nnew/1.png\n");
  REQUIRE_MESSAGE(lines.code == 0, lines.err);
  CHECK(lines.out.starts_with("file,rank,class,label,probability\nnew/2.png,1,blue,0,0."));
  CHECK(contains(lines.out, "\nnew/2.png,2,red,1,0."));
  CHECK(contains(lines.out, "\nnew/1.png,1,red,1,0."));
}

TEST_CASE("several ranks and batches print the same bytes as one") {
  const Trained trained;
  const ChildResult one = trained.predict({"--json", "--top=2", "out", "train", "new"});
  REQUIRE_MESSAGE(one.code == 0, one.err);
  CHECK(objects_in(one.out).size() == 19);
  for (const char* batch : {"--batch_size=1", "--batch_size=4"}) {
    const ChildResult three =
        trained.predict({"--json", "--top=2", "--nproc_per_node=3", batch, "out", "train", "new"});
    CHECK_MESSAGE(three.code == 0, three.err);
    CHECK(three.out == one.out);
  }
}

TEST_CASE("an image that cannot be read is named, the others are predicted, and the exit code says so") {
  const Trained trained;
  trained.folder.write("new/2.png", "no picture");
  for (const char* ranks : {"--nproc_per_node=1", "--nproc_per_node=2"}) {
    const ChildResult result =
        trained.predict({ranks, "--batch_size=1", "--json", "out", "new", "nothing.png"});
    CHECK(result.code == 65);
    CHECK(contains(result.err, "fleetrun: new/2.png"));
    CHECK(contains(result.err, "nothing.png"));
    CHECK(contains(result.err, "fleetrun: error: 2 of 4 images could not be read\n"));
    const auto objects = objects_in(result.out);
    REQUIRE(objects.size() == 4);
    CHECK(objects[1].contains("error"));
    CHECK(objects[2]["predictions"][0]["class"] == "red");
  }
}

TEST_CASE("a model whose weights are no numbers has no answer") {
  const Trained trained;
  std::string bytes = trained.folder.read("out/model.safetensors");
  bytes.replace(bytes.size() - 8, 8, std::string(8, '\xff'));  // the last two weights: NaN
  trained.folder.write("nan.safetensors", bytes);
  for (const char* ranks : {"--nproc_per_node=1", "--nproc_per_node=2"}) {
    const ChildResult result = trained.predict({ranks, "--batch_size=1", "nan.safetensors", "new"});
    CHECK(result.code == 80);
    CHECK(result.out.empty());
    CHECK_MESSAGE(contains(result.err, "the scores of new/1.png are not finite"), result.err);
  }
}

TEST_CASE("a file that does not say which model it holds is used with the job of the training") {
  const Trained trained;
  // The same length: the offsets stay.
  std::string bytes = trained.folder.read("out/model.safetensors");
  const std::string key = "model.name";
  bytes.replace(bytes.find(key), key.size(), "other.name");
  trained.folder.write("bare.safetensors", bytes);
  const ChildResult refused = trained.predict({"bare.safetensors", "new/1.png"});
  CHECK(refused.code == 65);
  CHECK(contains(refused.err, "bare.safetensors has no metadata for model.name"));
  CHECK(contains(refused.err, "hint: --job JOB.json takes it from the job of the training"));
  const ChildResult with_job = trained.predict({"--job=job.json", "bare.safetensors", "new/1.png"});
  CHECK_MESSAGE(with_job.code == 0, with_job.err);
  CHECK(with_job.out == trained.predict({"out", "new/1.png"}).out);
}

TEST_CASE("a job does not change what a model file says about itself") {
  const Trained trained;
  const ChildResult result = trained.predict({"--job=job.json", "out", "new/1.png"});
  CHECK(result.code == 0);
  CHECK(result.out == trained.predict({"out", "new/1.png"}).out);
  CHECK(contains(result.err, "--job has no effect: out/model.safetensors says itself which model it holds"));
}

TEST_CASE("a file with the names of PaddlePaddle is used like any other") {
  const Trained trained;
  const ChildResult exported =
      trained.run_words({"export", "--names=paddle", "out/model.safetensors", "paddle.safetensors"});
  REQUIRE_MESSAGE(exported.code == 0, exported.err);
  const ChildResult result = trained.predict({"--job=job.json", "paddle.safetensors", "new/1.png"});
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(result.out == trained.predict({"out", "new/1.png"}).out);
}

TEST_CASE("predict says what is missing on its command line") {
  const Launch launch;
  const ChildResult nothing = launch.run_words({"predict"});
  CHECK(nothing.code == 2);
  CHECK(contains(nothing.err, "found no model"));
  const ChildResult no_image = launch.run_words({"predict", "m.safetensors"});
  CHECK(no_image.code == 2);
  CHECK(contains(no_image.err, "found no image after the model m.safetensors"));
  const ChildResult job = launch.run_words({"predict", "job.json", "a.png"});
  CHECK(job.code == 2);
  CHECK(contains(job.err, "hint: fleetrun predict --job=job.json MODEL IMAGE..."));
  CHECK(launch.run_words({"predict", "--json", "--csv", "m", "a.png"}).code == 2);
  const ChildResult missing = launch.run_words({"predict", "m.safetensors", "a.png"});
  CHECK(missing.code == 66);
  CHECK(contains(missing.err, "m.safetensors"));
}

}  // namespace
}  // namespace fleetrun::predict_command_test
