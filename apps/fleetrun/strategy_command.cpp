#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/system/file.h"
#include "base/system/marked_file.h"
#include "base/system/standard_output.h"
#include "base/system/unique_fd.h"
#include "base/text/printable.h"
#include "commands.h"
#include "job/keys/job_keys.h"
#include "job/parse_job.h"
#include "job/read/draft.h"
#include "job/save_strategy.h"
#include "job/strategy_files/strategy_fields.h"
#include "job/strategy_files/strategy_file.h"

namespace fleetrun {
namespace {

using job::FieldUse;
using job::PaddleVersion;
using Words = std::vector<std::string>;

constexpr mode_t kPermissions = 0777;

Error refuse(const std::string& message) { return {ErrorKind::usage, message, "fleetrun strategy --help"}; }

bool is_job(const std::string& file) { return file.ends_with(".json"); }

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) log_line("fleetrun", "note: " + note);
}

// Throws what is wrong with the file.
job::StrategyDocument read_document(const std::string& file) {
  job::StrategyDocument document = job::read_strategy_file(file);
  if (!document.problems.empty())
    throw Error(ErrorKind::config, job::describe_problems(file, document.problems));
  return document;
}

// ---- save

std::optional<PaddleVersion> wanted_version(const FoundFlags& found) {
  const auto text = found.value("--paddle");
  if (!text) return std::nullopt;
  if (*text == "2" || *text == "2.0") return PaddleVersion::paddle_2;
  if (*text == "3") return PaddleVersion::paddle_3;
  throw refuse(fmt::format("--paddle is {}, wanted 2 or 3", *text));
}

job::SavedStrategy save_job(const std::string& file, const Words& overrides, const FoundFlags& found) {
  const job::ParsedJob job = job::parse_job_file(file, overrides);
  print_notes(job.notes);
  return save_strategy_of(job, wanted_version(found).value_or(PaddleVersion::paddle_3), found.has("--all"));
}

job::SavedStrategy save_again(const std::string& file, const Words& overrides, const FoundFlags& found) {
  if (!overrides.empty())
    throw refuse(fmt::format("found {} after a strategy file, wanted the file to write", overrides.front()));
  if (found.has("--all")) throw refuse("--all is for job files");
  const job::StrategyDocument document = read_document(file);
  const PaddleVersion own =
      document.version == PaddleVersion::any ? PaddleVersion::paddle_3 : document.version;
  return save_strategy_again(document, file, wanted_version(found).value_or(own));
}

bool is_saved(int fd, const std::string& path) {
  try {
    return job::is_saved_strategy(read_file(fd, path, job::kStrategyBytesLimit));
  } catch (const Error&) {  // for example, it is too large
    return false;
  }
}

// A link to our stdout, such as /dev/stdout, also where the shell sends that to a file.
bool is_stdout(const struct stat& facts) {
  struct stat ours {};
  return ::fstat(STDOUT_FILENO, &ours) == 0 && facts.st_dev == ours.st_dev && facts.st_ino == ours.st_ino;
}

void write_to_device(const std::string& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (!fd) throw Error(ErrorKind::create, fmt::format("opening {}: {}", path, describe_errno(errno)));
  write_all(fd.get(), text, path);
}

void write_strategy(const std::string& path, const std::string& text) {
  struct stat facts {};
  const bool exists = ::stat(path.c_str(), &facts) == 0;
  if (path == "-" || (exists && is_stdout(facts))) return print_answer(text);
  if (exists && (S_ISCHR(facts.st_mode) || S_ISFIFO(facts.st_mode))) return write_to_device(path, text);
  require_ours(
      path, [&](int fd) { return is_saved(fd, path); }, "choose another name, or move it away");
  write_file_atomically(path, text);
  if (exists && ::chmod(path.c_str(), facts.st_mode & kPermissions) != 0)
    throw Error(ErrorKind::io, fmt::format("setting the permissions of {}: {}", path, describe_errno(errno)));
}

void check_file_to_write(const Words& words) {
  if (words.size() < 2 || words.back().find('=') != std::string::npos)
    throw refuse("found no file to write, wanted JOB.json OUT.prototxt");
  if (is_job(words.back()))
    throw refuse(fmt::format("found {} as the file to write, wanted a strategy file, such as OUT.prototxt",
                             words.back()));
}

void save(const Words& words, const FoundFlags& found) {
  check_file_to_write(words);
  const Words overrides(words.begin() + 1, words.end() - 1);
  const job::SavedStrategy saved = is_job(words.front()) ? save_job(words.front(), overrides, found)
                                                         : save_again(words.front(), overrides, found);
  if (!saved.left_out.empty() && !found.has("--partial"))
    throw Error(ErrorKind::config, fmt::format("{}", fmt::join(saved.left_out, "\n")),
                "--partial leaves such values out; --paddle=2 or --paddle=3 chooses the version");
  for (const std::string& line : saved.left_out) log_line("fleetrun", "warning: left out: " + line);
  write_strategy(words.back(), saved.text);
}

// ---- load

void load(const Words& words) {
  if (words.size() != 1)
    throw refuse(fmt::format("found {} words after load, wanted one strategy file", words.size()));
  const job::LoadedStrategy loaded = job::load_strategy_file(words.front());
  print_notes(loaded.notes);
  print_answer(to_json_lines(JsonValue::object({{"strategy", loaded.settings}})));
}

// ---- show

std::string describe_use(const job::StrategyField& field) {
  switch (field.use) {
    case FieldUse::key:
    case FieldUse::overridden:
      return fmt::format("strategy.{}", field.key);
    case FieldUse::at_default:
      return "no change: the value is the default";
    case FieldUse::turned_off:
      return "no effect: the job turns it off";
    case FieldUse::no_effect:
      return "no effect: " + field.why;
    case FieldUse::unsupported:
      break;
  }
  return "not supported by this build";
}

struct Row {
  std::string place, name, value, remark;
};

std::string describe(const std::vector<Row>& rows) {
  constexpr std::size_t kWidestValue = 30;  // characters; a longer one moves only its own remark
  std::size_t place = 0, name = 0, value = 0;
  for (const Row& row : rows) {
    place = std::max(place, row.place.size());
    name = std::max(name, row.name.size());
    value = std::max(value, std::min(row.value.size(), kWidestValue));
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{:{}}  {:{}}  {:{}}  {}", row.place, place, row.name, name, row.value, value,
                        row.remark);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

// JSON has no inf and nan.
std::string describe_value(const JsonValue& value) {
  const bool is_number = value.is(JsonValue::Kind::number);
  return is_number && !std::isfinite(value.number) ? value.text : to_json(value);
}

std::string show_document(const std::string& file) {
  const job::StrategyDocument document = read_document(file);
  std::vector<Row> rows;
  for (const job::StrategyField& field : map_fields(document, job::job_keys(), nullptr))
    rows.push_back({job::describe_place(file, field.position), field.path, describe_value(field.value),
                    describe_use(field)});
  const char* version = document.version == PaddleVersion::paddle_2   ? "PaddlePaddle 2.0"
                        : document.version == PaddleVersion::paddle_3 ? "PaddlePaddle 3"
                                                                      : "PaddlePaddle 2.0 and 3";
  return fmt::format("{}: fields of {}\n{}", file, version, describe(rows));
}

std::string show_job(const std::string& file, const Words& overrides) {
  const job::ParsedJob job = job::parse_job_file(file, overrides);
  print_notes(job.notes);
  std::vector<Row> rows;
  for (const job::KeyValue& value : job.values)
    if (value.key.starts_with("strategy")) rows.push_back({value.key, value.value, value.origin, ""});
  return describe(rows);
}

void show(const Words& words) {
  if (words.empty()) throw refuse("found no file, wanted a strategy file or a job file");
  const std::string& file = words.front();
  if (!is_job(file) && words.size() > 1)
    throw refuse(fmt::format("found {} after a strategy file, wanted nothing", words[1]));
  print_answer(
      printable_lines(is_job(file) ? show_job(file, {words.begin() + 1, words.end()}) : show_document(file)));
}

}  // namespace

int run_strategy_command(const FoundFlags& found, const Environment&) {
  const std::string task = found.rest.empty() ? "" : found.rest.front();
  const Words words(found.rest.begin() + (found.rest.empty() ? 0 : 1), found.rest.end());
  if (task == "save")
    save(words, found);
  else if (task == "load")
    load(words);
  else if (task == "show")
    show(words);
  else
    throw refuse(task.empty() ? "found no task, wanted save, load or show"
                              : fmt::format("found {}, wanted save, load or show", task));
  return 0;
}

}  // namespace fleetrun
