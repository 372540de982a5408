// Every kind of bad job file: its exit code and words, within 0.2 s, no process started and no file made.
#include <sys/stat.h>

#include <filesystem>

#include "e2e/launcher.h"
#include "support/slowdown.h"

namespace fleetrun::bad_job_test {
namespace {

constexpr double kPromised_s = 0.2;

struct BadJob {
  std::string kind;
  std::string content;
  int code;
  std::string words;
};

// A job in which `data` stands for data.train, and `rest` for further keys.
std::string job_with(const std::string& data, const std::string& rest = "") {
  return R"({"model": {"name": "mlp"}, "data": {"train": )" + data + "}" + rest + "}";
}
const std::string kSynthetic = R"({"format": "synthetic", "samples": 64, "shape": [1, 8, 8], "classes": 4})";

std::vector<BadJob> bad_jobs() {
  return {
      {"empty", "", 78, "job.json:1:1"},
      {"UTF-16", std::string("\xff\xfe{\0}\0", 6), 78, "UTF-16"},
      {"byte order mark", "\xef\xbb\xbf{}", 78, "byte order mark"},
      {"truncated", R"({"model": {"name": "mlp")", 78, "job.json:1:"},
      {"trailing comma", R"({"model": {"name": "mlp",}})", 78, "comma"},
      {"comment", "{// no\n}", 78, "comment"},
      {"duplicate key", job_with(kSynthetic, R"(, "device": "cpu", "device": "cpu")"), 78, "device"},
      {"unknown key", job_with(kSynthetic, R"(, "optimiser": {})"), 78, "did you mean \"optimizer\"?"},
      {"wrong type", job_with(kSynthetic, R"(, "train": {"epochs": "two"})"), 78, "train.epochs"},
      {"zero", job_with(kSynthetic, R"(, "train": {"epochs": 0})"), 78, "train.epochs"},
      {"negative", job_with(kSynthetic, R"(, "train": {"epochs": -1})"), 78, "train.epochs"},
      {"2^63", job_with(kSynthetic, R"(, "train": {"epochs": 9223372036854775808})"), 78, "train.epochs"},
      {"1e309", job_with(kSynthetic, R"(, "optimizer": {"learning_rate": 1e309})"), 78, "1e309"},
      {"NaN", job_with(kSynthetic, R"(, "optimizer": {"learning_rate": NaN})"), 78, "NaN"},
      {"fraction for an integer", job_with(kSynthetic, R"(, "train": {"epochs": 64.5})"), 78, "64.5"},
      {"missing key", R"({"model": {"name": "mlp"}, "data": {}})", 78, "data.train: found nothing"},
      {"contradiction", job_with(kSynthetic, R"(, "train": {"epochs": 1, "max_steps": 1})"), 78, "max_steps"},
      {"deep nesting", std::string(100000, '['), 78, "job.json:1:"},
      {"too large", std::string(2 << 20, ' '), 78, "bytes"},
      {"path that leaves the folder", job_with(kSynthetic, R"(, "output": {"dir": "../../etc"})"), 78,
       "output.dir"},
      {"NUL in a string", job_with(kSynthetic, R"(, "env": {"A": "\u0000"})"), 78, "env"},
      {"invalid UTF-8", job_with(kSynthetic, ", \"env\": {\"A\": \"\xff\"}"), 78, "UTF-8"},
      {"data set missing", job_with(R"({"format": "image_folder", "path": "nowhere"})"), 66, "nowhere"},
      {"empty data set", job_with(R"({"format": "image_folder", "path": "empty"})"), 65, "empty"},
      {"unknown value", R"({"model": {"name": "lenett"}, "data": {"train": )" + kSynthetic + "}}", 78,
       "lenet"},
      {"lists of unlike length",
       job_with(
           kSynthetic,
           R"(, "optimizer": {"learning_rate": {"name": "piecewise", "boundaries": [1], "values": [1]}})"),
       78, "values"},
      {"too few classes",
       R"({"model": {"name": "mlp", "class_dim": 3}, "data": {"train": )" + kSynthetic + "}}", 78,
       "class_dim"},
      {"later feature",
       job_with(kSynthetic, R"(, "strategy": {"sharding": true, "sharding_configs": {"mp_degree": 2}})"), 78,
       "strategy.sharding_configs.mp_degree"},
      {"sharding_degree of other ranks",
       job_with(kSynthetic,
                R"(, "strategy": {"sharding": true, "sharding_configs": {"sharding_degree": 3}})"),
       78, "sharding_degree is 3 for 2 ranks"},
  };
}

void check_refused(const Launch& launch, const BadJob& bad) {
  CAPTURE(bad.kind);
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "job.json"});
  CHECK(result.code == bad.code);
  CHECK_MESSAGE(contains(result.err, bad.words), result.err);
  CHECK(result.seconds < kPromised_s * testing::slowness());
  CHECK_FALSE(launch.folder.has("log"));
  CHECK_FALSE(launch.folder.has("output"));
  CHECK(result.out.empty());
}

TEST_CASE("a job file with one mistake is refused in its own words") {
  for (const BadJob& bad : bad_jobs()) {
    const Launch launch;
    std::filesystem::create_directory(launch.folder / "empty");
    launch.folder.write("job.json", bad.content);
    check_refused(launch, bad);
  }
}

TEST_CASE("what is not a file at all is refused without waiting") {
  const Launch missing;
  check_refused(missing, {"missing", "", 66, "job.json"});
  const Launch directory;
  std::filesystem::create_directory(directory.folder / "job.json");
  check_refused(directory, {"directory", "", 78, "directory"});
  const Launch pipe;
  REQUIRE(::mkfifo((pipe.folder / "job.json").c_str(), 0600) == 0);
  check_refused(pipe, {"pipe", "", 78, "pipe"});
  const Launch device;
  std::filesystem::create_symlink("/dev/zero", device.folder / "job.json");
  check_refused(device, {"device", "", 78, "device"});
}

TEST_CASE("all mistakes of a file are reported at once, each with its line and column") {
  const Launch launch;
  launch.folder.write("job.json",
                      "{\n  \"model\": {\"name\": \"mlp\", \"dropout\": 2},\n  \"data\": {\n    \"train\": " +
                          kSynthetic + ",\n    \"batch_size\": 0},\n  \"trane\": {}\n}\n");
  const ChildResult result = launch.run_words({"job.json"});
  CHECK(result.code == 78);
  CHECK(contains(result.err, "job.json:2:39: model.dropout: found 2"));
  CHECK(contains(result.err, "job.json:5:19: data.batch_size: found 0"));
  CHECK(contains(result.err, "job.json:6:3: trane: "));
}

}  // namespace
}  // namespace fleetrun::bad_job_test
