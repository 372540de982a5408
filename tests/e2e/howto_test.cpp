// The commands of docs/howto.md, in their order and as a reader copies them. They run on small pictures that the test makes, or on those of
// the folder in FLEETRUN_HOWTO_PICTURES, which has pets/cat, other classes in pets/, and classes in birds/.
#include <sstream>

#include "base/system/file.h"
#include "e2e/launcher.h"
#include "e2e/peers.h"
#include "runtime/data/image_files.h"
#include "support/leave_out.h"

namespace fleetrun::howto_test {
namespace {

constexpr int kSide = 24, kPictures = 20;  // of each class

// Stripes whose colour is that of the class.
std::string picture(int channel, int number) {
  std::string rows;
  for (int pixel = 0; pixel < kSide * kSide; ++pixel)
    for (int c = 0; c < 3; ++c) rows += static_cast<char>(c == channel ? 120 + (pixel + number) % 100 : 20);
  return runtime::make_png({}, kSide, kSide, rows);
}

void add_pictures(const TemporaryFolder& folder, const std::string& set, const Words& classes) {
  for (int channel = 0; channel < std::ssize(classes); ++channel) {
    const std::string below = set + "/" + classes[static_cast<std::size_t>(channel)];
    std::filesystem::create_directories(folder / below);
    for (int i = 0; i < kPictures; ++i)
      folder.write(below + "/" + std::to_string(i) + ".png", picture(channel, i));
  }
}

void add_pictures(const TemporaryFolder& folder) {
  if (const char* real = std::getenv("FLEETRUN_HOWTO_PICTURES")) {
    for (const std::string set : {"pets", "birds"})
      std::filesystem::copy(real + ("/" + set), folder / set, std::filesystem::copy_options::recursive);
    return;
  }
  add_pictures(folder, "pets", {"cat", "dog"});
  add_pictures(folder, "birds", {"owl", "robin", "wren"});
}

// The texts between "```LANGUAGE" and "```".
Words blocks_of(const std::string& language) {
  Words blocks;
  std::istringstream lines(read_file(FLEETRUN_SOURCE_DIR "/docs/howto.md", 1 << 20));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "```" + language) blocks.emplace_back();
    if (inside && line != "```") blocks.back() += line + "\n";
    if (line.starts_with("```")) inside = line == "```" + language;
  }
  return blocks;
}

TEST_CASE("each command of docs/howto.md does what the page says") {
  if (!has_program("g++")) LEAVE_OUT("no g++ to compile the program of the page");
  const Launch launch;
  add_pictures(launch.folder);
  ChildOptions options = launch.options();
  options.environment["PATH"] =
      std::filesystem::path(FLEETRUN_BINARY).parent_path().string() + ":" + std::getenv("PATH");
  const Words blocks = blocks_of("sh");
  REQUIRE(blocks.size() == 10);
  for (const std::string& block : blocks) {
    const ChildResult result = run_child({"/bin/sh", "-e", "-c", block}, options);
    REQUIRE_MESSAGE(result.code == 0, block << result.out << result.err);
  }
  for (const char* made : {"pets-model/best.safetensors", "curves.svg", "log/report.html",
                           "birds-model/model.safetensors", "pets-model/eval/confusion.svg", "run.slurm"})
    CHECK_MESSAGE(launch.folder.has(made), made);
  CHECK(contains(launch.folder.read("answers.jsonl"), "\"class\": \""));
  CHECK(launch.folder.read("log/workerlog.1") == "rank 1 of 2 0.2\n");
}

TEST_CASE("the lines of docs/howto.md for Python read a model that fleetrun has trained") {
  for (const char* package : {"torchvision", "safetensors"})
    if (!has_package(torch_folder(), package)) LEAVE_OUT(no_package(torch_folder(), package));
  const Launch launch;
  add_pictures(launch.folder, "pets", {"cat", "dog"});
  launch.folder.write("pets.json", R"({"model": {"name": "resnet18"},
    "data": {"train": {"format": "image_folder", "path": "pets", "image_size": 24}, "batch_size": 8},
    "train": {"max_steps": 5}, "output": {"dir": "pets-model"}})");
  REQUIRE(launch.run_words({"--device=cpu", "--nproc_per_node=1", "pets.json"}).code == 0);
  const Words blocks = blocks_of("python");
  REQUIRE(blocks.size() == 1);
  launch.folder.write("read.py", blocks.front() + "print(classes, model(torch.zeros(1, 3, 24, 24)).shape)\n");
  ChildProcess python({torch_folder() + "/python3", "read.py"}, launch.options());
  const ChildResult result = python.wait(120s);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(result.out == "['cat', 'dog'] torch.Size([1, 2])\n");
}

}  // namespace
}  // namespace fleetrun::howto_test
