#include "launch/cli/config_file.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/cli/command_line.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::config_file_test {
namespace {

struct File {
  explicit File(const std::string& content) { folder.write("fleet.json", content); }
  std::string path() const { return folder / "fleet.json"; }
  LaunchOptions parse(std::vector<std::string> words, const Environment& environment = {}) const {
    words.insert(words.begin(), "--config=" + path());
    return parse_launch_options(words, environment).options;
  }
  std::string error() const {
    try {
      parse({"x"});
    } catch (const Error& error) {
      return std::to_string(error.exit_code()) + " " + error.message();
    }
    return "no error";
  }
  TemporaryFolder folder;
};

TEST_CASE("a flag wins over the environment, which wins over the file, which wins over the default") {
  const File file(R"({"nproc_per_node": 4, "log_dir": "logs", "grace": 2.5, "selected_gpus": "0,1"})");
  Environment environment;
  environment.set("PADDLE_LOG_DIR", "elsewhere");
  const LaunchOptions options = file.parse({"--nproc_per_node=8", "x"}, environment);
  CHECK(options.nproc_per_node.value == 8);
  CHECK(options.nproc_per_node.origin == Origin::flag);
  CHECK(options.log_dir.value == "elsewhere");
  CHECK(options.log_dir.origin == Origin::environment);
  CHECK(options.grace.value == std::chrono::milliseconds(2500));
  CHECK(options.grace.origin == Origin::file);
  CHECK(options.grace.source == file.path() + ": grace");
  CHECK(options.gpus.value == "0,1");
  CHECK(options.job_id.origin == Origin::fallback);
}

TEST_CASE("a variable names the file as well") {
  const File file(R"({"job_id": "mine"})");
  Environment environment;
  environment.set("FLEETRUN_CONFIG", file.path());
  CHECK(parse_launch_options({"x"}, environment).options.job_id.value == "mine");
}

TEST_CASE("everything that is wrong with the file is told at once, with its place") {
  const File file("{\n  \"nproc\": 4,\n  \"log_dir\": [\"a\"],\n  \"config\": \"other.json\"\n}");
  const std::string path = file.path();
  CHECK(file.error() == "78 " + path +
                            ":2:3: nproc: found a name that is not a flag; did you mean nproc_per_node?\n" +
                            path + ":3:14: log_dir: found no plain value, wanted a text or a number\n" +
                            path + ":4:3: config: found a name that is not a flag");
  CHECK(File("[]").error().ends_with(":1:1: found no object, wanted {\"name of a flag\": value, ...}"));
  CHECK(File("{\"log_dir\": ").error().starts_with("78 "));
}

TEST_CASE("a number that is none is told once") {
  const File file(R"({"grace": NaN})");
  CHECK(file.error() == "78 " + file.path() + ":1:11: grace: found NaN, wanted a finite number");
}

TEST_CASE("a bad value names the file and the flag") {
  const File file(R"({"nproc_per_node": "two"})");
  CHECK(file.error() ==
        "2 " + file.path() +
            ": nproc_per_node is \"two\", must be a whole number between 1 and 65536, or auto, gpu or cpu");
}

TEST_CASE("a file that is not there is an error") {
  CHECK_THROWS_AS(parse_launch_options({"--config=/no/such.json", "x"}, {}), Error);
}

}  // namespace
}  // namespace fleetrun::launch::config_file_test
