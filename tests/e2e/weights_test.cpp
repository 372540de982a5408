// Weights that leave a training, enter another one, and leave a job that trains nothing.
#include <filesystem>
#include <map>
#include <regex>

#include "e2e/launcher.h"

namespace fleetrun::weights_test {
namespace {

using Shapes = std::map<std::string, std::vector<int>>;

const std::string kQuickstart = FLEETRUN_SOURCE_DIR "/configs/quickstart.json";

// A job whose data set is not there.
const std::string kNoData = R"({
  "model": {"name": "mlp", "hidden": [8], "class_dim": 4, "input_shape": [1, 4, 4]},
  "data": {"train": {"format": "image_folder", "path": "nowhere", "channels": 1, "image_size": 4}}
})";

const Shapes kTinyShapes = {
    {"f1.weight", {8, 16}}, {"f1.bias", {8}}, {"f2.weight", {4, 8}}, {"f2.bias", {4}}};

// Where the values begin in a safetensors file, by the format's description, not with our reader.
std::size_t data_of(const std::string& content) {
  REQUIRE(content.size() > 8);
  std::size_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(content[i]);
  REQUIRE(length <= content.size() - 8);
  return 8 + length;
}

nlohmann::json header_of(const std::string& content) {
  return nlohmann::json::parse(content.substr(8, data_of(content) - 8));
}

Shapes shapes_in(const std::string& content) {
  Shapes shapes;
  const nlohmann::json header = header_of(content);
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    CHECK(tensor["dtype"] == "F32");
    shapes[name] = tensor["shape"].get<std::vector<int>>();
  }
  return shapes;
}

// The values of a tensor, as they lie in the file.
std::string bytes_of(const std::string& content, const std::string& tensor) {
  const nlohmann::json header = header_of(content);
  const auto offsets = header.at(tensor).at("data_offsets").get<std::vector<std::size_t>>();
  return content.substr(data_of(content) + offsets.at(0), offsets.at(1) - offsets.at(0));
}

double test_loss_of(const nlohmann::json& report) { return report["train"]["test_loss"]; }

TEST_CASE("trained weights are written, and training goes on from them where it stood") {
  const Launch launch;
  const ChildResult first = launch.run_words({"--nproc_per_node=2", "--device=cpu", kQuickstart,
                                              "train.epochs=1", "output.dir=" + launch.folder / "first"});
  REQUIRE_MESSAGE(first.code == 0, first.err);
  const double test_loss = test_loss_of(launch.report());
  const std::string path = launch.folder / "first/model.safetensors";
  CHECK(contains(first.out, "\nweights: " + path + "\ndata: "));
  CHECK(shapes_in(launch.folder.read("first/model.safetensors")) == Shapes{{"c1.weight", {32, 1, 5, 5}},
                                                                           {"c1.bias", {32}},
                                                                           {"c2.weight", {64, 32, 5, 5}},
                                                                           {"c2.bias", {64}},
                                                                           {"f1.weight", {512, 1024}},
                                                                           {"f1.bias", {512}},
                                                                           {"f2.weight", {6, 512}},
                                                                           {"f2.bias", {6}}});

  // So small a learning rate leaves the weights where they are: the test loss is that of the loaded ones.
  const ChildResult second =
      launch.run_words({"--nproc_per_node=2", "--device=cpu", kQuickstart, "train.epochs=1", "train.seed=2",
                        "optimizer.learning_rate=1e-30", "model.pretrained=" + path,
                        "output.dir=" + launch.folder / "second"});
  REQUIRE_MESSAGE(second.code == 0, second.err);
  CHECK(test_loss_of(launch.report()) == test_loss);
  CHECK(launch.folder.read("second/model.safetensors") == launch.folder.read("first/model.safetensors"));
}

TEST_CASE("fine-tuning trains a new last layer behind frozen layers") {
  const Launch launch;
  REQUIRE(launch.run_words({"export", kQuickstart, launch.folder / "a.safetensors"}).code == 0);
  const ChildResult result = launch.run_words(
      {"--nproc_per_node=2", "--device=cpu", kQuickstart, "train.epochs=1", "model.class_dim=20",
       "model.pretrained=" + launch.folder / "a.safetensors", "model.new_head=auto", R"(model.freeze=["c*"])",
       "output.dir=" + launch.folder / "tuned"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "model.freeze: 4 parameters are trained, and the others keep their values\n"));
  CHECK(contains(result.out, "model.new_head: the layer f2 does not fit "));
  const std::string before = launch.folder.read("a.safetensors"),
                    after = launch.folder.read("tuned/model.safetensors");
  CHECK(shapes_in(after).at("f2.weight") == std::vector<int>{20, 512});
  for (const char* frozen : {"c1.weight", "c1.bias", "c2.weight", "c2.bias"})
    CHECK(bytes_of(after, frozen) == bytes_of(before, frozen));
  CHECK(bytes_of(after, "f1.weight") != bytes_of(before, "f1.weight"));
}

TEST_CASE("export writes the weights that a job starts with, and opens no data set that it does not need") {
  const Launch launch;
  launch.folder.write("job.json", kNoData);
  const ChildResult result = launch.run_words({"export", "job.json", "a.safetensors"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(result.out == "weights: a.safetensors\n");
  CHECK(shapes_in(launch.folder.read("a.safetensors")) == kTinyShapes);
  CHECK_FALSE(launch.folder.has("log"));
  CHECK_FALSE(launch.folder.has("output"));

  CHECK(launch.run_words({"export", "job.json", "train.seed=2", "b.safetensors"}).code == 0);
  CHECK(launch.folder.read("b.safetensors") != launch.folder.read("a.safetensors"));
  CHECK(launch
            .run_words(
                {"export", "job.json", "train.seed=2", "model.pretrained=a.safetensors", "c.safetensors"})
            .code == 0);
  CHECK(launch.folder.read("c.safetensors") == launch.folder.read("a.safetensors"));
}

TEST_CASE("export writes a job or a model under PaddlePaddle's names, and back") {
  const Launch launch;
  launch.folder.write("job.json", kNoData);
  const auto exported = [&](Words words) {
    words.insert(words.begin(), "export");
    const ChildResult result = launch.run_words(words);
    CHECK_MESSAGE(result.code == 0, result.err);
    return result.out;
  };
  exported({"job.json", "a.safetensors"});
  CHECK(exported({"--names=paddle", "job.json", "paddle.safetensors"}) == "weights: paddle.safetensors\n");
  CHECK(shapes_in(launch.folder.read("paddle.safetensors")) ==
        Shapes{{"f1.weight", {16, 8}}, {"f1.bias", {8}}, {"f2.weight", {8, 4}}, {"f2.bias", {4}}});
  exported({"--names", "paddle", "a.safetensors", "b.safetensors"});
  CHECK(launch.folder.read("b.safetensors") == launch.folder.read("paddle.safetensors"));

  exported({"b.safetensors", "b.torchvision.safetensors"});
  CHECK(launch.folder.read("b.torchvision.safetensors") == launch.folder.read("a.safetensors"));
  CHECK(exported({"job.json", "model.pretrained=b.safetensors", "c.safetensors"}) ==
        "model.pretrained: " + launch.folder / "b.safetensors" +
            " has the names and shapes of PaddlePaddle\nweights: c.safetensors\n");
  CHECK(launch.folder.read("c.safetensors") == launch.folder.read("a.safetensors"));
  exported({"job.json", "train.seed=2", "b.safetensors"});  // replaces a file of fleetrun under any names
}

TEST_CASE("export keeps trained weights that have the name of the new file, and no others") {
  const Launch launch;
  launch.folder.write("job.json", R"({
    "model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "synthetic", "samples": 16, "shape": [1, 4, 4], "classes": 4}, "batch_size": 8},
    "train": {"epochs": 1}, "checkpoint": {"dir": "saved"}})");
  REQUIRE(launch.run_words({"--nproc_per_node=1", "job.json"}).code == 0);
  const std::string trained = launch.folder.read("output/model.safetensors");
  const auto replace = [&](const std::string& input) {
    const ChildResult result = launch.run_words({"export", input, "output/model.safetensors"});
    CHECK_MESSAGE(result.code == 0, result.err);
    return result.out;
  };
  const std::string kept = "weights of an earlier run: output/model.previous.safetensors\n",
                    written = "weights: output/model.safetensors\n";
  CHECK(replace("job.json") == kept + written);
  CHECK(launch.folder.read("output/model.previous.safetensors") == trained);
  CHECK(replace("job.json") == written);  // the job makes those again
  CHECK(launch.folder.read("output/model.previous.safetensors") == trained);

  launch.folder.write("start.safetensors", launch.folder.read("output/model.safetensors"));
  launch.folder.write("output/model.safetensors", trained);
  launch.folder.write("output/model.previous.safetensors", "of the user");
  CHECK(replace("start.safetensors") == "weights of an earlier run: output/model.1.safetensors\n" + written);
  CHECK(launch.folder.read("output/model.1.safetensors") == trained);
  CHECK(launch.folder.read("output/model.previous.safetensors") == "of the user");

  const ChildResult states = launch.run_words(
      {"export", "--names=paddle", "output/saved/000001-step-2/optimizer.safetensors", "states.safetensors"});
  CHECK(states.code == 65);
  CHECK_MESSAGE(contains(states.err,
                         "optimizer.safetensors holds no model: found no tensor whose name ends in "
                         ".weight\n"),
                states.err);
  CHECK_FALSE(launch.folder.has("states.safetensors"));
}

TEST_CASE("export tells what is wrong") {
  const Launch launch;
  launch.folder.write("job.json", kNoData);
  const auto code = [&](Words words) {
    words.insert(words.begin(), "export");
    return launch.run_words(words).code;
  };
  CHECK(code({"--help"}) == 0);
  CHECK(launch.run_words({"export", "--help"})
            .out.starts_with("usage: fleetrun export [flags] JOB.json|MODEL.safetensors "));
  CHECK(code({}) == 2);
  CHECK(code({"--model"}) == 2);
  CHECK(code({"job.json"}) == 2);
  CHECK(code({"job.json", "train.seed=2"}) == 2);
  CHECK(code({"nosuch.json", "a.safetensors"}) == 66);
  CHECK(code({"job.json", "model.pretrained=nosuch", "a.safetensors"}) == 66);
  CHECK(code({"job.json", "no/folder/a.safetensors"}) == 73);
  CHECK(code({"--names=tensorflow", "job.json", "a.safetensors"}) == 2);
  CHECK(code({"a.safetensors", "train.seed=2", "b.safetensors"}) == 2);
  CHECK(code({"nosuch.safetensors", "a.safetensors"}) == 66);
  launch.folder.write("bad.safetensors", "no such thing");
  CHECK(code({"bad.safetensors", "a.safetensors"}) == 65);
  CHECK(code({"bad.safetensors", "./bad.safetensors"}) == 2);
  const ChildResult bad =
      launch.run_words({"export", "job.json", "model.pretrained=bad.safetensors", "a.safetensors"});
  CHECK(bad.code == 65);
  CHECK(contains(bad.err, "bad.safetensors is not a good safetensors file"));
  CHECK_FALSE(launch.folder.has("a.safetensors"));
}

TEST_CASE("pretrained weights of another model end the run with 65, and all tensors are named") {
  const Launch launch;
  launch.folder.write("job.json", kNoData);
  REQUIRE(launch.run_words({"export", "job.json", "a.safetensors"}).code == 0);
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "--device=cpu", kQuickstart,
                                               "model.pretrained=" + launch.folder / "a.safetensors",
                                               "output.dir=" + launch.folder / "output"});
  CHECK(result.code == 65);
  CHECK(contains(result.err, "  c1.weight is missing\n"));
  CHECK(contains(result.err, "  f1.weight is [8,16], wanted [512,1024]\n"));
  CHECK(contains(result.err, "  while loading model.pretrained\n"));
}

TEST_CASE("an output folder that cannot be made is reported before the training") {
  const Launch launch;
  launch.folder.write("file", "x");
  const ChildResult result = launch.run_words({kQuickstart, "output.dir=" + launch.folder / "file/output"});
  CHECK(result.code == 73);
  CHECK_FALSE(contains(result.out, "[Epoch 0, batch 0]"));
}

TEST_CASE("hunt 62: a training warns of initial weights that know other pixels, and of torchvision's units") {
  const Launch launch;
  const auto train = [&](const Words& overrides) {
    Words words = {kQuickstart, "train.max_steps=1", "data.test=null", "train.epochs=null",
                   "output.dir=" + (launch.folder / "out")};
    words.insert(words.end(), overrides.begin(), overrides.end());
    const ChildResult result = launch.run_words(words);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    return result.out;
  };
  CHECK_FALSE(contains(train({"data.train.mean=[10]"}), "warning: data.train.mean"));
  const std::string pretrained = "model.pretrained=" + (launch.folder / "out/model.safetensors");
  CHECK(contains(
      train({"data.train.mean=[20]", pretrained}),
      "warning: data.train.mean is [20], and was [10] when the weights of model.pretrained were trained\n"));
  const Words colour = {"data.train.channels=3", "data.train.std=[48,48,48]", pretrained};
  for (const std::string mean :
       {"[10,10,10]", "[10,10,20]"}) {  // hunt 64: the value of grey counts for each colour
    train({"data.train.mean=[10]"});
    Words words = colour;
    words.push_back("data.train.mean=" + mean);
    CHECK(contains(train(words), "warning: data.train.") == (mean == "[10,10,20]"));
  }
  CHECK(contains(train({"data.train.mean=[0.5]", "data.train.std=[0.2]"}),
                 "for pixels from 0 to 1 they would be mean=[127.5] std=[51]\n"));
}

}  // namespace
}  // namespace fleetrun::weights_test
