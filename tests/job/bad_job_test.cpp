// Every way in which people get a job file wrong, with the words that they read then.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "job/job_text.h"
#include "support/temporary_folder.h"
#include "support/without_rights.h"

namespace fleetrun::job::bad_job_test {
namespace {

// What reading this path says, with its exit code before it.
std::string complaint_about_file(const std::string& path) {
  try {
    parse_job_file(path, {});
    return "";
  } catch (const Error& error) {
    return fmt::format("{} {}", error.exit_code(), error.message());
  }
}

TEST_CASE("row 13: a beta that f32 cannot follow is refused") {
  for (const char* beta : {"beta1", "beta2"}) {
    const std::string adam = std::string(R"("optimizer": {"name": "adam", ")") + beta + R"(": )";
    CHECK(complaint(good_job(adam + "0.99999}")).empty());
    for (const char* value : {"0.999999", "0.99999999"})
      CHECK(complaint(good_job(adam + value + "}")) == std::string("a.json:4:40: optimizer.") + beta +
                                                           ": found " + value +
                                                           ", wanted a number from 0 to 0.99999");
  }
}

TEST_CASE("a missing file") {
  CHECK(complaint_about_file("/no/such/job.json") ==
        "66 opening /no/such/job.json: No such file or directory (errno 2)");
}

TEST_CASE("a file that may not be read") {
  const TemporaryFolder folder;
  folder.write("job.json", good_job());
  ::chmod(folder.path().c_str(), 0755);
  ::chmod((folder / "job.json").c_str(), 0000);
  const std::string expected =
      fmt::format("77 opening {}: Permission denied (errno 13)", folder / "job.json");
  CHECK(holds_without_rights([&] { return complaint_about_file(folder / "job.json") == expected; }));
}

TEST_CASE("a folder, a FIFO and a device: told at once, without reading them") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(complaint_about_file(folder.path()) ==
        fmt::format("78 {} is a directory, wanted a regular file", folder.path()));
  CHECK(complaint_about_file(folder / "fifo") ==
        fmt::format("78 {} is a device, pipe or socket, wanted a regular file", folder / "fifo"));
  CHECK(complaint_about_file("/dev/zero") ==
        "78 /dev/zero is a device, pipe or socket, wanted a regular file");
}

TEST_CASE("a file of 1 GB: its size is enough to refuse it") {
  const TemporaryFolder folder;
  folder.write("job.json", good_job());
  REQUIRE(::truncate((folder / "job.json").c_str(), off_t{1} << 30) == 0);
  CHECK(complaint_about_file(folder / "job.json") ==
        fmt::format("78 {} has 1073741824 bytes, the limit is 1048576", folder / "job.json"));
}

TEST_CASE("an empty file") { CHECK(complaint("") == "a.json:1:1: found the text is empty, wanted a value"); }

TEST_CASE("a file whose top is not an object") {
  CHECK(complaint("[1]") == "a.json:1:1: found a list of 1, wanted an object with the keys of a job");
}

TEST_CASE("UTF-16 and byte order marks") {
  using namespace std::string_literals;
  CHECK(complaint("\xFF\xFE{\0"s) == "a.json:1:1: found UTF-16 text, wanted UTF-8");
  CHECK(complaint("{\0\"\0"s) == "a.json:1:1: found UTF-16 text, wanted UTF-8");
  CHECK(complaint("\xEF\xBB\xBF" + good_job()) ==
        "a.json:1:1: found a byte order mark, wanted UTF-8 without one");
}

TEST_CASE("bytes that are not UTF-8") {
  CHECK(complaint("{\n\"model\": \"\xFF\"}") == "a.json:2:11: found the byte 0xFF, wanted UTF-8");
}

TEST_CASE("a truncated file") {
  CHECK(complaint("{\n\"model\": {\"name\": \"lenet\"") ==
        "a.json:2:26: model: found the text ends inside the object that begins at 2:10, wanted ',' or '}'");
}

TEST_CASE("a trailing comma") {
  CHECK(complaint("{\n\"model\": {\"name\": \"lenet\",}}") ==
        "a.json:2:26: model: found a comma before '}', wanted none after the last value");
}

TEST_CASE("a comment") {
  CHECK(complaint("{\n// the model\n\"model\": {}}") ==
        "a.json:2:1: found a comment, wanted none: JSON has no comments");
}

TEST_CASE("a key that comes twice") {
  CHECK(complaint(good_job("\"device\": \"cpu\",\n\"device\": \"cuda\"")) ==
        "a.json:5:1: device: found the key again, wanted it once; it is first at 4:1");
}

TEST_CASE("an unknown key") {
  CHECK(
      complaint(good_job("\"train\": {\"epoch\": 3, \"wibble\": 1}")) ==
      "a.json:4:11: train.epoch: found an unknown key; did you mean \"epochs\"?\n"
      "a.json:4:23: train.wibble: found an unknown key, wanted one of epochs, max_steps, global_batch, seed, threads, "
      "log_every, fetch_every, print_format, eval_every, check_weights_every, early_stopping, profile");
}

TEST_CASE("a key for what fleetrun does not have") {
  CHECK(
      complaint(good_job(R"("train": {"label_smoothing": 0.1, "mixup_alpha": 0.2})")) ==
      "a.json:4:11: train.label_smoothing: found an unknown key, wanted none: fleetrun has no label smoothing\n"
      "a.json:4:35: train.mixup_alpha: found an unknown key, wanted none: fleetrun has no mixup");
}

TEST_CASE("a value of the wrong type") {
  CHECK(
      complaint(R"({
"model": {"name": 3, "dropout": "0.5", "input_shape": [1, 2]},
"data": {"train": [], "batch_size": "32", "shuffle": 1},
"optimizer": {"learning_rate": "fast", "weight_decay": []},
"env": {"A": 1}, "strategy": 7, "output": {"dir": ""}})") ==
      R"(a.json:2:19: model.name: found 3, wanted one of "mlp", "lenet", "resnet20", "resnet18", "resnet34", )"
      R"("resnet50", "resnet101", "resnet152", "vgg16", "mobilenet_v1")"
      "\n"
      R"(a.json:2:33: model.dropout: found "0.5", wanted a number from 0 to below 1)"
      "\n"
      "a.json:2:55: model.input_shape: found a list of 2, wanted a list of 3 whole numbers from 1 to 65536\n"
      "a.json:3:19: data.train: found a list of 0, wanted an object\n"
      "a.json:3:37: data.batch_size: found \"32\", wanted a whole number of at least 1\n"
      "a.json:3:54: data.shuffle: found 1, wanted true or false\n"
      "a.json:4:32: optimizer.learning_rate: found \"fast\", wanted a number or an object\n"
      "a.json:4:56: optimizer.weight_decay: found a list of 0, wanted a number of at least 0\n"
      "a.json:5:14: env.A: found 1, wanted a string\n"
      "a.json:5:30: strategy: found 7, wanted an object or the path of a file\n"
      "a.json:5:51: output.dir: found \"\", wanted a path");
}

TEST_CASE("numbers out of range: 0, negative, 2^63, 1e309") {
  CHECK(
      complaint(good_job(R"("train": {"epochs": 0, "log_every": -1, "seed": 9223372036854775808},
"optimizer": {"learning_rate": 0, "momentum": 1.0, "weight_decay": 1e309})")) ==
      "a.json:4:21: train.epochs: found 0, wanted a whole number of at least 1\n"
      "a.json:4:37: train.log_every: found -1, wanted a whole number of at least 1\n"
      "a.json:4:49: train.seed: found 9223372036854775808, wanted a whole number that fits into 64 bits\n"
      "a.json:5:32: optimizer.learning_rate.base: found 0, wanted a number above 0\n"
      "a.json:5:47: optimizer.momentum: found 1.0, wanted a number from 0 to below 1\n"
      "a.json:5:68: optimizer.weight_decay: found 1e309, wanted a number that fits into 64 bits (up to about "
      "1.8e308)");
  CHECK(
      complaint(good_job(R"("train": {"max_steps": 9223372036854775808})")) ==
      "a.json:4:24: train.max_steps: found 9223372036854775808, wanted a whole number of at least 1 and at most 2147483647");
  CHECK(
      complaint(good_job(R"("strategy": {"amp_configs": {"init_loss_scaling": 1e39}})")) ==
      "a.json:4:51: strategy.amp_configs.init_loss_scaling: found 1e39, wanted a number above 0 and at most 3.4028234663852886e+38");
  CHECK(complaint(good_job(R"("optimizer": {"name": "adam", "epsilon": 1e-44})")) ==
        "a.json:4:42: optimizer.epsilon: found 1e-44, wanted a number of at least 1e-30");
}

TEST_CASE("NaN and Infinity") {
  CHECK(complaint(good_job("\"optimizer\": {\"learning_rate\": NaN}")) ==
        "a.json:4:32: optimizer.learning_rate: found NaN, wanted a finite number");
  CHECK(complaint(good_job("\"optimizer\": {\"learning_rate\": -Infinity}")) ==
        "a.json:4:32: optimizer.learning_rate: found -Infinity, wanted a finite number");
}

TEST_CASE("64.5 where a whole number is wanted, while 64.0 is one") {
  CHECK(complaint(good_job("\"train\": {\"log_every\": 64.5}")) ==
        "a.json:4:24: train.log_every: found 64.5, wanted a whole number of at least 1");
  CHECK(parse(good_job("\"train\": {\"log_every\": 64.0}")).spec.train.log_every == 64);
}

TEST_CASE("a required key that is missing") {
  CHECK(
      complaint("{}") ==
      "a.json:1:1: model: found nothing, wanted an object\na.json:1:1: data: found nothing, wanted an object");
  CHECK(
      complaint(R"({"model": {}, "data": {"train": {"format": "idx", "images": "x"}}})") ==
      "a.json:1:11: model.name: found nothing, wanted one of \"mlp\", \"lenet\", \"resnet20\", \"resnet18\", "
      "\"resnet34\", \"resnet50\", \"resnet101\", \"resnet152\", \"vgg16\", \"mobilenet_v1\"\n"
      "a.json:1:33: data.train.labels: found nothing, wanted a path, as data.train.format is \"idx\"");
}

TEST_CASE("keys that contradict each other") {
  CHECK(complaint(good_job("\"train\": {\"epochs\": 3, \"max_steps\": 10}")) ==
        "a.json:4:37: train.max_steps: found 10 beside train.epochs at a.json:4:21, wanted one of the two");
  CHECK(
      complaint(good_job("\"optimizer\": {\"name\": \"sgd\", \"momentum\": 0.5}")) ==
      "a.json:4:42: optimizer.momentum: found 0.5, wanted nothing: optimizer.name is \"sgd\", which does not use it");
}

TEST_CASE("100,000 nested lists") {
  CHECK(complaint("{\"model\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}") ==
        "a.json:1:42: model: found more than 32 levels of nesting, wanted fewer");
}

TEST_CASE("an output folder outside the job's folder: by .., absolute, by a symbolic link") {
  const TemporaryFolder folder;
  const std::string job = folder / "job.json";
  const auto about_output = [&](const std::string& dir) {
    folder.write("job.json", good_job("\"output\": {\"dir\": \"" + dir + "\"}"));
    return complaint_about_file(job);
  };
  std::filesystem::create_directory_symlink("/etc", folder / "link");
  std::filesystem::create_directory_symlink("/no/such/place", folder / "nowhere");
  const std::string start = fmt::format("78 {}:4:19: output.dir: found ", job);
  const std::string elsewhere = "; output.dir=PATH on the command line may name any folder";
  CHECK(about_output("../../etc/passwd") ==
        start + "\"../../etc/passwd\", wanted a path inside " + folder.path() + elsewhere);
  CHECK(about_output("/etc") == start + "\"/etc\", wanted a path inside " + folder.path() + elsewhere);
  CHECK(about_output("link/x") ==
        start + fmt::format("\"link/x\", wanted a path inside {}; a symbolic link leads to /etc/x{}",
                            folder.path(), elsewhere));
  CHECK(about_output("nowhere/x") ==
        start + fmt::format("\"nowhere/x\", wanted no symbolic link that leads nowhere, as {} does{}",
                            folder / "nowhere", elsewhere));
  CHECK(about_output("deep/down/../er") == "");
}

TEST_CASE("NUL and control characters in a text") {
  CHECK(complaint("{\"device\": \"c\x01pu\"}") ==
        "a.json:1:14: device: found the control character U+0001 in a text, wanted it written as \\u0001");
  CHECK(complaint(good_job(R"("env": {"A": "x\u0000y"})")) ==
        "a.json:4:14: env.A: found a text with the character U+0000, wanted one without");
  CHECK(
      complaint(good_job(R"("output": {"dir": "a\u001bb"})")) ==
      R"(a.json:4:19: output.dir: found "a\u001bb" with the control character U+001B, wanted text without it)");
}

TEST_CASE("an unknown value of a choice") {
  CHECK(complaint(R"({"model": {"name": "lennet"}, "data": {"train": {"format": "tar"}}})") ==
        "a.json:1:20: model.name: found \"lennet\", wanted one of \"mlp\", \"lenet\", \"resnet20\", "
        "\"resnet18\", \"resnet34\", \"resnet50\", \"resnet101\", \"resnet152\", \"vgg16\", "
        "\"mobilenet_v1\"; did you mean \"lenet\"?\n"
        "a.json:1:60: data.train.format: found \"tar\", wanted one of \"image_folder\", \"image_list\", "
        "\"cifar_bin\", \"idx\", \"synthetic\"");
  CHECK(
      complaint(good_job("\"optimizer\": {\"name\": \"adagrad\"}")) ==
      "a.json:4:23: optimizer.name: found \"adagrad\", wanted one of \"sgd\", \"momentum\", \"adam\", \"adamw\", \"lars\", \"lamb\"");
}

TEST_CASE("lists of a schedule that do not fit together") {
  CHECK(
      complaint(good_job(
          R"("optimizer": {"learning_rate": {"name": "piecewise", "boundaries": [30, 20], "values": [0.1, 0.01]}})")) ==
      "a.json:4:68: optimizer.learning_rate.boundaries: found 20 after 30, wanted ascending numbers\n"
      "a.json:4:88: optimizer.learning_rate.values: found a list of 2, wanted 3: one more than boundaries, "
      "which has 2");
}

TEST_CASE("a model with fewer outputs than the data has classes") {
  CHECK(
      complaint(
          R"({"model": {"name": "mlp", "class_dim": 5}, "data": {"train": {"format": "cifar_bin", "path": "x"}}})") ==
      "a.json:1:40: model.class_dim: found 5, wanted at least 10: data.train has 10 classes");
  CHECK(
      complaint(
          R"({"model": {"name": "mlp", "class_dim": 100}, "data": {"train": {"format": "cifar_bin", "path": "x"}}})") ==
      "");
}

TEST_CASE("a trace of steps that do not come in this order, or not at all") {
  CHECK(complaint(good_job(R"("output": {"trace": [5, 2]})")) ==
        "a.json:4:21: output.trace: found 2 after 5, wanted ascending numbers");
  CHECK(complaint(good_job(R"("output": {"trace": [0, 2]})"))
            .starts_with("a.json:4:22: output.trace[0]: found 0, wanted "));
  CHECK(complaint(good_job(R"("train": {"max_steps": 3}, "output": {"trace": [4, 9]})")) ==
        "a.json:4:48: output.trace: found steps from 4, wanted at most train.max_steps, which is 3");
  CHECK(complaint(good_job(R"("train": {"max_steps": 3}, "output": {"trace": [3, 9]})")) == "");
}

TEST_CASE("keys of a later build are refused by name, whatever they hold") {
  CHECK(complaint(good_job(), {"strategy.sharding_configs.mp_degree=2"}) ==
        "command line: strategy.sharding_configs.mp_degree: found 2, not supported by this build");
  CHECK(complaint(good_job(), {"strategy.sharding_configs.mp_degree=1"}) == "");
}

TEST_CASE("hostile names and texts come out harmless") {
  CHECK(complaint(good_job("\"\\u001b[2J\": 1"))
            .starts_with("a.json:4:1: \"\\u001b[2J\": found an unknown key"));
  CHECK(complaint(good_job("\"device\": \"" + std::string(10'000, 'x') + "\"")) ==
        "a.json:4:11: device: found \"" + std::string(60, 'x') +
            "\"..., wanted one of \"auto\", \"cpu\", \"cuda\"");
}

TEST_CASE("a hundred problems are reported, the others counted") {
  std::string keys = "\"k0\": 0";
  for (int i = 1; i < 150; ++i) keys += fmt::format(", \"k{}\": 0", i);
  const std::string text = complaint(good_job(keys));
  CHECK(std::count(text.begin(), text.end(), '\n') == 100);
  CHECK(text.ends_with("\nand 50 more"));
}

}  // namespace
}  // namespace fleetrun::job::bad_job_test
