#include "launch/cli/help.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "launch/cli/command_line.h"
#include "launch/cli/flags/launch_flags.h"
#include "launch/cli/man_page.h"

namespace fleetrun::launch::help_test {
namespace {

using Words = std::vector<std::string>;

// Of the line that begins with that word.
Words words_of(const std::string& first, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (!words.empty() && words.front() == first) return words;
  }
  return {};
}

std::vector<Subcommand> two_subcommands() {
  return {
      {.name = "look", .arguments = "FILE", .summary = "Look into a file", .details = "It stays as it is."},
      {.name = "leave", .arguments = "", .summary = "Leave it"}};
}

std::string answer_to(const std::vector<std::string>& words, const Environment& environment = {}) {
  return parse_launch_options(words, environment, CalledAs::fleetrun, two_subcommands())
      .answer.value_or("no answer");
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE(
    "every name stands for one flag, and every shown one has a section and a help without a full stop") {
  LaunchOptions options;
  std::set<std::string> names, variables;
  for (const Flag& flag : launch_flags(options)) {
    for (const std::string& name : flag.names) CHECK_MESSAGE(names.insert(name).second, name);
    if (!flag.variable.empty()) CHECK_MESSAGE(variables.insert(flag.variable).second, flag.variable);
    if (!flag.shown()) continue;
    CHECK_MESSAGE(!flag.section.empty(), flag.name());
    CHECK_MESSAGE(!flag.help.ends_with('.'), flag.name());
    CHECK_MESSAGE(flag.set != nullptr, flag.name());
    CHECK_MESSAGE((flag.bare.empty() || flag.takes_value()), flag.name());
  }
}

TEST_CASE("a default that is shown is one that the flag takes") {
  LaunchOptions options;
  for (const Flag& flag : launch_flags(options)) {
    if (flag.show == nullptr || flag.show().empty()) continue;
    const std::string before = flag.show();
    flag.set(before, {Origin::flag, flag.name()});
    CHECK(flag.show() == before);
  }
}

TEST_CASE(
    "help says for each flag what it takes, its default, its variable and its other names, in 100 columns") {
  const std::string help = answer_to({"--help"});
  CHECK(contains(help, "  --grace SECONDS         Seconds to wait after SIGTERM"));
  CHECK(contains(help, "(default: 10;\n"));
  CHECK(contains(help, "$TORCH_ELASTIC_SHUTDOWN_TIMEOUT; also --shutdown_timeout)"));
  CHECK(contains(help, "$PADDLE_DEVICES; also --selected_gpus, --devices)"));
  CHECK(contains(help, "  --show_config[=FORMAT]"));
  CHECK_FALSE(contains(help, "--server_num"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 110, line);
  for (const Subcommand& one : two_subcommands()) CHECK(contains(help, "\n  " + one.name + " "));
}

TEST_CASE("show_config gives each value with its origin, for people and for programs") {
  Environment environment;
  environment.set("PADDLE_LOG_DIR", "logs");
  const std::string text = answer_to({"--nproc_per_node=2", "--show_config", "train.py"}, environment);
  CHECK(words_of("nproc_per_node", text) == Words{"nproc_per_node", "2", "--nproc_per_node"});
  CHECK(words_of("log_dir", text) == Words{"log_dir", "logs", "PADDLE_LOG_DIR"});
  CHECK(words_of("grace", text) == Words{"grace", "10", "default"});
  CHECK(words_of("gpus", text) == Words{"gpus", "-", "default"});
  const auto json = nlohmann::json::parse(answer_to({"--show_config=json", "--grace=1.5"}, environment));
  CHECK(json["grace"]["value"] == "1.5");
  CHECK(json["grace"]["origin"] == "flag");
  CHECK(json["log_dir"]["origin"] == "environment");
  CHECK(json["log_dir"]["source"] == "PADDLE_LOG_DIR");
  CHECK(json["gpus"]["value"].is_null());
}

constexpr std::string_view kBehindName = " \n[,";

TEST_CASE("the manual page has every flag and no line that is taken for a request") {
  LaunchOptions options;
  const std::vector<Flag> table = launch_flags(options);
  const std::string whole = man_page(table, two_subcommands());
  CHECK(contains(whole, ".B look FILE\nLook into a file. It stays as it is.\n"));
  const std::string page = whole.substr(0, whole.find(".SH SUBCOMMANDS"));
  for (const Flag& flag : table) {
    std::string name;
    for (const char letter : flag.name()) name += letter == '-' ? "\\-" : std::string(1, letter);
    const bool there = std::any_of(kBehindName.begin(), kBehindName.end(),
                                   [&](char letter) { return contains(page, ".B " + name + letter); });
    CHECK_MESSAGE(there == flag.shown(), flag.name());
  }
}

}  // namespace
}  // namespace fleetrun::launch::help_test
