#include "answering_run.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/json/json_value.h"
#include "base/system/file.h"
#include "launch/cli/command_line.h"
#include "launch/launch.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/settle_nodes.h"
#include "words_of_run.h"

namespace fleetrun {
namespace {

constexpr std::size_t kMostAnswerBytes = 64 << 20;

std::string make_folder(const std::string& name, const Environment& environment) {
  const std::string parent = environment.get_or("TMPDIR", "/tmp");
  std::string path = fmt::format("{}/fleetrun-{}-XXXXXX", parent, name);
  if (::mkdtemp(path.data()) == nullptr)
    throw Error(ErrorKind::create, fmt::format("creating a folder in {}: {}", parent, describe_errno(errno)),
                "set TMPDIR to another folder, or --log_dir");
  return path;
}

struct Asked {
  launch::LaunchOptions options;
  std::optional<launch::Allocation> allocation;
};

Asked read_words(const std::vector<std::string>& words, const Environment& environment) {
  const launch::SchedulerFacts facts = {
      environment, [](const std::string& path) { return read_file(path, launch::kMostListBytes); }};
  Asked asked;
  asked.options = launch::parse_launch_options(
                      words, environment, launch::CalledAs::fleetrun, {},
                      [&](launch::LaunchOptions& some) { asked.allocation = settle_nodes(some, facts); })
                      .options;
  return asked;
}

}  // namespace

void tell_nodes_of_run(const launch::FoundFlags& found, const Environment& environment, const Error& error) {
  try {
    const Asked asked = read_words(words_of_run(found, ""), environment);
    launch::tell_other_nodes(asked.options, environment, asked.allocation, error);
  } catch (
      const std::exception&) {  // NOLINT(bugprone-empty-catch): its flags do not say where the others are
  }
}

AnsweringRun::AnsweringRun(const launch::FoundFlags& found, const std::string& flag, const std::string& name,
                           const std::vector<AnswerFile>& answers, const Environment& environment)
    : environment_(environment), words_({flag}) {
  for (const std::string& word : words_of_run(found, "")) words_.push_back(word);
  Asked asked = read_words(words_, environment);
  options_ = std::move(asked.options);
  allocation_ = std::move(asked.allocation);
  temporary_ = options_.log_dir.origin == launch::Origin::fallback;
  if (temporary_) options_.log_dir.value = make_folder(name, environment);
  folder_ = options_.log_dir.value;
  for (const AnswerFile& file : answers) require_own_answer(file, folder_);
}

AnsweringRun::~AnsweringRun() {
  std::error_code problem;
  if (temporary_) std::filesystem::remove(folder_, problem);
}

int AnsweringRun::run(bool silent) {
  launch::LaunchOptions options = options_;
  if (silent) options.console.value = {.text = "none", .ranges = {}};
  if (options.log_level.origin == launch::Origin::fallback)
    options.log_level.value = launch::LogLevel::warning;
  return launch::launch(options, environment_, allocation_, words_);
}

std::optional<std::string> AnsweringRun::answer(const AnswerFile& file) const {
  const std::string path = file.path_in(folder_);
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_file(path, kMostAnswerBytes);
}

void AnsweringRun::clean_up_if_stopped() const {
  const std::string path = folder_ + "/report.json";
  if (!temporary_ || !std::filesystem::exists(path)) return;
  try {
    const JsonDocument report = read_json(read_file(path, kMostAnswerBytes));
    const JsonValue* const cause = report.root.find("cause", JsonValue::Kind::text);
    const bool names_a_log = report.root.find("earlier_error", JsonValue::Kind::object) != nullptr;
    std::error_code problem;
    if (cause != nullptr && cause->text == "stopped" && !names_a_log)
      std::filesystem::remove_all(folder_, problem);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the report is damaged, so it stays
  }
}

void AnsweringRun::clean_up() const {
  if (temporary_) std::filesystem::remove_all(folder_);
}

}  // namespace fleetrun
