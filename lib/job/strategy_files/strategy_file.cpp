#include "job/strategy_files/strategy_file.h"

#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"
#include "job/keys/check_value.h"
#include "job/keys/job_keys.h"
#include "job/read/fill_spec.h"
#include "job/read/json_tree.h"
#include "job/strategy_files/load_prototxt.h"
#include "job/strategy_files/strategy_fields.h"

namespace fleetrun::job {
namespace {

namespace fs = std::filesystem;
using Kind = JsonValue::Kind;

constexpr const char* kFile = "strategy_file";
constexpr const char* kStrategy = "strategy";
// What the launcher hands to the ranks.
constexpr const char* kSettings = "settings";
constexpr const char* kTurnedOff = "turned_off";

// The path that the job gives, relative to the current folder like that of the job file.
std::optional<std::string> find_path(const JsonValue& root, const Key& keys, const Draft& draft) {
  const JsonMember* member = root.find(kFile);
  std::vector<JsonProblem> ignored;  // fill_spec reports them
  if (member == nullptr || !check_value(*keys.find(kFile), member->value, kFile, ignored))
    return std::nullopt;
  return (fs::path(draft.file).parent_path() / member->value.text).lexically_normal().string();
}

// One note for all fields of a message.
void add_notes(const std::vector<StrategyField>& fields, const std::string& file, Draft& draft) {
  std::set<std::string> noted;
  for (const StrategyField& field : fields) {
    const std::string name = field.path.substr(0, field.path.find_first_of(".["));
    if (field.use != FieldUse::no_effect || !noted.insert(name).second) continue;
    draft.notes.push_back(
        fmt::format("{} of {} has no effect: {}", name, describe_place(file, field.position), field.why));
  }
}

// JSON has no such numbers, so check_value would not report them.
void take_out_infinite(std::vector<StrategyField>& fields, Draft& draft) {
  const auto is_infinite = [](const StrategyField& field) {
    return field.use == FieldUse::key && field.value.is(Kind::number) && !std::isfinite(field.value.number);
  };
  for (const StrategyField& field : fields)
    if (is_infinite(field))
      draft.problems.push_back(
          {field.position, fmt::format("{}.{}", kStrategy, field.key),
           fmt::format("found {}, wanted a finite number", describe_found(field.value))});
  std::erase_if(fields, is_infinite);
}

void report_unsupported(const std::vector<StrategyField>& fields, Draft& draft) {
  for (const StrategyField& field : fields)
    if (field.use == FieldUse::unsupported)
      draft.problems.push_back(
          {field.position, fmt::format("{}.{}", kStrategy, field.path),
           fmt::format("found {}, not supported by this build", describe_found(field.value))});
}

// The settings of the file go into the spec before those of the job.
void fill(const JsonValue& settings, const Key& keys, Draft& of_file, Draft& draft) {
  of_file.spec = draft.spec;
  fill_part(settings, *keys.find(kStrategy), kStrategy, of_file);
  draft.spec = of_file.spec;
  draft.notes.insert(draft.notes.end(), of_file.notes.begin(), of_file.notes.end());
  draft.strategy_file = {of_file.file, of_file.written, of_file.problems};
}

// The job has no keys for them; false has done its work.
void take_out_turned_off(JsonValue& root, const std::vector<std::string>& fields, Draft& draft) {
  for (const std::string& field : fields) take_at(root, fmt::format("{}.{}", kStrategy, field));
  draft.turned_off = fields;
}

void take_handed(JsonValue& root, const Key& keys, const JsonValue& handed, Draft& draft) {
  Draft of_file;
  if (const JsonValue* settings = handed.find(kSettings, Kind::object)) fill(*settings, keys, of_file, draft);
  std::vector<std::string> turned_off;
  if (const JsonValue* fields = handed.find(kTurnedOff, Kind::list))
    for (const JsonValue& field : fields->items) turned_off.push_back(field.text);
  take_out_turned_off(root, turned_off, draft);
}

JsonValue read_settings(const std::string& path, const JsonValue& root, const Key& keys, Draft& of_file) {
  const StrategyDocument document = read_strategy_file(path);
  of_file.problems = document.problems;
  if (!document.problems.empty()) return JsonValue::object();
  const JsonMember* written = root.find(kStrategy);
  std::vector<StrategyField> fields =
      map_fields(document, keys, written == nullptr ? nullptr : &written->value);
  report_unsupported(fields, of_file);
  take_out_infinite(fields, of_file);
  add_notes(fields, path, of_file);
  for (const StrategyField& field : fields)
    if (field.use == FieldUse::turned_off) of_file.turned_off.push_back(field.path);
  return settings_of(fields);
}

}  // namespace

StrategyDocument read_strategy_file(const std::string& path) {
  return prototxt_plugin().read(read_file(path, kStrategyBytesLimit));
}

LoadedStrategy load_strategy_file(const std::string& path) {
  const Key keys = job_keys();
  Draft draft, of_file;
  of_file.file = path;
  const JsonValue settings = read_settings(path, JsonValue::object(), keys, of_file);
  fill(settings, keys, of_file, draft);
  if (!of_file.problems.empty()) throw Error(ErrorKind::config, describe_problems(path, of_file.problems));
  return {settings, of_file.notes};
}

void move_strategy_name(JsonValue& root, Draft& draft) {
  const JsonMember* strategy = root.find(kStrategy);
  if (strategy == nullptr || !strategy->value.is(Kind::text)) return;
  const JsonMember* file = root.find(kFile);
  const JsonValue name = strategy->value;
  if (file != nullptr && !file->value.is(Kind::null))
    draft.problems.push_back(
        {name.position, kStrategy,
         fmt::format("found another name of {}, wanted one of the two; the other is at {}", kFile,
                     describe_place(draft.file, file->position))});
  take_at(root, kStrategy);
  put_at(root, kFile, name);
  draft.strategy_names_file = true;
}

std::optional<JsonValue> take_handed_strategy(JsonValue& root) {
  const JsonMember* file = root.find(kFile);
  if (file == nullptr || !file->value.is(Kind::object)) return std::nullopt;
  return take_at(root, kFile);
}

std::optional<JsonValue> apply_strategy_file(JsonValue& root, const Key& keys,
                                             const std::optional<JsonValue>& handed, Draft& draft) {
  if (handed) {
    take_handed(root, keys, *handed, draft);
    return std::nullopt;
  }
  const auto path = find_path(root, keys, draft);
  if (!path) return std::nullopt;
  Draft of_file;
  of_file.file = *path;
  const std::string place = describe_place(draft.file, root.find(kFile)->value.position);
  const JsonValue settings = with_context(fmt::format("reading {} of {}", kFile, place),
                                          [&] { return read_settings(*path, root, keys, of_file); });
  fill(settings, keys, of_file, draft);
  take_out_turned_off(root, of_file.turned_off, draft);
  JsonValue read = JsonValue::object({{kSettings, settings}});
  if (!draft.turned_off.empty()) read.add(kTurnedOff, draft.turned_off);
  return read;  // without the path: nodes may keep the file in different folders
}

std::string with_handed_strategy(std::string_view text, const JsonValue& handed) {
  JsonValue root = read_json(text).root;
  Draft ignored;  // parse_job has reported what is wrong
  move_strategy_name(root, ignored);
  put_at(root, kFile, handed);
  return to_json(root);
}

}  // namespace fleetrun::job
