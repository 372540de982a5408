// The flags of other launchers: files list every one of them with what becomes of it here.
#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error/error.h"
#include "base/system/file.h"
#include "launch/cli/command_line.h"

namespace fleetrun::launch {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kMostBytes = 1 << 20;  // of a file of ours
const std::string kSource = FLEETRUN_SOURCE_DIR;

struct Line {
  Words words;
  std::string expected;
};

std::vector<Line> lines_of(const std::string& name) {
  std::istringstream text(read_file(kSource + "/tests/launch/flags/" + name, kMostBytes));
  std::vector<Line> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    const auto arrow = line.find(" => ");
    REQUIRE_MESSAGE(arrow != std::string::npos, line);
    lines.push_back({.words = {}, .expected = line.substr(arrow + 4)});
    std::istringstream words(line.substr(0, arrow));
    for (std::string word; words >> word;) lines.back().words.push_back(word);
  }
  return lines;
}

nlohmann::json settings(Words words) {
  words.emplace_back("--show_config=json");
  return nlohmann::json::parse(*parse_launch_options(words, {}).answer);
}

// "setting tee=3", as far as they differ from those without flags, then "note ...".
std::string effect_of(const Words& words) {
  Words effects;
  const nlohmann::json before = settings({}), after = settings(words);
  for (const auto& [name, entry] : after.items())
    if (entry["value"] != before[name]["value"])
      effects.push_back(fmt::format("setting {}={}", name, entry["value"].get<std::string>()));
  Words whole = words;
  whole.emplace_back("train.py");
  const CommandLine line = parse_launch_options(whole, {});
  if (line.options.auto_cluster_config.origin ==
      Origin::flag)  // PaddlePaddle's own switch, which is not shown
    effects.push_back(fmt::format("setting auto_cluster_config={}", line.options.auto_cluster_config.value));
  for (const std::string& note : line.options.notes) effects.push_back("note " + note);
  std::sort(effects.begin(), effects.end(), [](const auto& a, const auto& b) {
    return std::pair(a.starts_with("note"), a) < std::pair(b.starts_with("note"), b);
  });
  return effects.empty() ? "nothing" : fmt::format("{}", fmt::join(effects, ", "));
}

// What is seen of the words, as the files have it.
std::string outcome_of(const Words& words) {
  try {
    if (const auto answer = parse_launch_options(words, {}).answer) return "answer " + *answer;
  } catch (const Error& error) {
    if (!error.message().starts_with("no script")) return "error " + error.message();
  }
  return effect_of(words);
}

void check_file(const std::string& name) {
  for (const Line& line : lines_of(name)) {
    const std::string seen = outcome_of(line.words);
    const bool as_expected =
        line.expected.starts_with("answer ") ? seen.starts_with(line.expected) : seen == line.expected;
    CHECK_MESSAGE(as_expected, fmt::format("{}\n  seen:     {}\n  expected: {}", fmt::join(line.words, " "),
                                           seen.substr(0, 300), line.expected));
  }
}

TEST_CASE("every flag of the newest torchrun does what it says, or says what stands for it") {
  check_file("torchrun.txt");
}

TEST_CASE(
    "every flag of the newest paddle.distributed.launch does what it says, or says what stands for it") {
  check_file("paddle.txt");
}

TEST_CASE("everyday flags of mpirun and horovodrun do what they say, or say what stands for it") {
  check_file("mpi.txt");
}

TEST_CASE("dashes and underscores are the same in every flag of torchrun") {
  for (const Line& line : lines_of("torchrun.txt")) {
    Words other = line.words;
    for (std::string& word : other)
      if (word.starts_with("--"))
        std::replace(word.begin() + 2, word.begin() + std::min(word.find('='), word.size()), '-', '_');
    CHECK(outcome_of(other) == outcome_of(line.words));
  }
}

TEST_CASE("the page for those who come from other launchers has every flag of theirs") {
  const std::string page = read_file(kSource + "/docs/coming-from-other-launchers.md", kMostBytes);
  for (const char* name : {"torchrun.txt", "paddle.txt", "mpi.txt"})
    for (const Line& line : lines_of(name)) {
      const std::string flag = line.words.front().substr(0, line.words.front().find('='));
      const bool there = page.find("`" + flag + "`") != std::string::npos ||
                         page.find("`" + flag + " ") != std::string::npos ||
                         page.find("`" + flag + "=") != std::string::npos;
      CHECK_MESSAGE(there, flag);
    }
}

TEST_CASE("-np is one flag only in front of the program") {
  const LaunchOptions options =
      parse_launch_options({"--log_dir", "-np", "-np", "3", "mpi_program", "-np", "4"}, {}).options;
  CHECK(options.log_dir.value == "-np");
  CHECK(options.nproc_per_node.value == 3);
  CHECK(options.arguments == Words{"-np", "4"});
}

TEST_CASE("called torchrun, everything has torchrun's default") {
  const LaunchOptions options =
      parse_launch_options({"train.py"}, {}, called_as("/opt/bin/torchrun")).options;
  CHECK(options.nproc_per_node.value == 1);
  CHECK(options.max_restart.value == 0);
  CHECK(options.console.value.all);
  CHECK(options.log_prefix.value->text.empty());
  CHECK(options.log_level.value == LogLevel::warning);
  CHECK(options.log_dir.value.empty());
  CHECK(options.grace.value == std::chrono::seconds(30));
  CHECK(called_as("build/bin/fleetrun") == CalledAs::fleetrun);
  CHECK(called_as("torchrun") == CalledAs::torchrun);
  CHECK(parse_launch_options({"check"}, {}, CalledAs::torchrun).options.program == "check");
}

TEST_CASE("called torchrun, its own variables speak for flags that are not given") {
  Environment environment;
  environment.set("PET_NPROC_PER_NODE", "4");
  environment.set("PET_STANDALONE", "1");
  environment.set("PET_MAX_RESTARTS", "2");
  environment.set("PET_NO_PYTHON", "0");
  const LaunchOptions options = parse_launch_options({"x"}, environment, CalledAs::torchrun).options;
  CHECK(options.nproc_per_node.value == 4);
  CHECK(options.nproc_per_node.source == "PET_NPROC_PER_NODE");
  CHECK(options.standalone.value);
  CHECK(options.max_restart.value == 2);
  CHECK_FALSE(options.no_python.value);
  CHECK_FALSE(parse_launch_options({"x"}, environment).options.nproc_per_node.value);
}

TEST_CASE("flags that contradict each other are refused, those that are beaten say so") {
  CHECK_THROWS_WITH_AS(parse_launch_options({"-m", "--no-python", "x"}, {}),
                       "--module and --no_python are both given: only Python can run a module", Error);
  CHECK(parse_launch_options({"--standalone", "--master-port=5", "x"}, {}).options.notes ==
        Words{"--master_port has no effect: --standalone takes a free port of this host"});
}

TEST_CASE("help lists the names of other launchers' flags, and the manual page explains them") {
  const std::string help = *parse_launch_options({"--help"}, {}).answer;
  CHECK(help.find("Flags of torchrun (man fleetrun explains them):\n  --standalone ") != std::string::npos);
  CHECK(help.find("Meet on a free port of this host") == std::string::npos);
}

TEST_CASE("the log folder of a launcher around us is not ours") {
  Environment environment;
  environment.set("PADDLE_LOG_DIR", "/run/log");
  CHECK(parse_launch_options({"x"}, environment).options.log_dir.value == "/run/log");
  environment.set("PADDLE_BACKUP_ENV_PATH", "/run/log/backup_env.0.json");
  CHECK(parse_launch_options({"x"}, environment).options.log_dir.value == "log");
}

}  // namespace
}  // namespace fleetrun::launch
