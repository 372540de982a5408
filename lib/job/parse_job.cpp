#include "job/parse_job.h"

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/system/file.h"
#include "job/checks/complete_spec.h"
#include "job/effective_values.h"
#include "job/keys/check_value.h"
#include "job/keys/job_keys.h"
#include "job/read/aliases.h"
#include "job/read/draft.h"
#include "job/read/fill_spec.h"
#include "job/read/job_paths.h"
#include "job/read/overrides.h"
#include "job/strategy_files/strategy_file.h"

namespace fleetrun::job {
namespace {

void throw_problems(const Draft& draft) {
  std::string words = describe_problems(draft.file, draft.problems);
  if (draft.strategy_file && !draft.strategy_file->problems.empty())
    words += (words.empty() ? "" : "\n") +
             describe_problems(draft.strategy_file->name, draft.strategy_file->problems);
  if (!words.empty()) throw Error(ErrorKind::config, words);
}

enum class Reader { launcher, rank };

ParsedJob parse(std::string_view text, const std::string& name, const std::vector<std::string>& words,
                Reader reader) {
  const Key keys = job_keys();
  const std::vector<Override> overrides = parse_overrides(words, keys);
  JsonDocument document = read_json(text);
  Draft draft;
  draft.file = name;
  draft.spec.file = name;
  draft.problems = document.problems;
  if (!document.complete) throw_problems(draft);
  if (!document.root.is(JsonValue::Kind::object)) {
    draft.report("", describe_found(document.root) + ", wanted an object with the keys of a job");
    throw_problems(draft);
  }
  std::optional<JsonValue> handed;
  if (reader == Reader::rank) handed = take_handed_strategy(document.root);
  move_strategy_name(document.root, draft);
  move_aliases(document.root, aliases_of(keys), draft);
  apply_overrides(document.root, overrides, keys, draft);
  const std::optional<JsonValue> read = apply_strategy_file(document.root, keys, handed, draft);
  fill_spec(document.root, keys, draft);
  complete_spec(draft);
  find_contradictions(draft);
  note_settings_without_switch(keys, draft);
  resolve_paths(keys, draft);
  throw_problems(draft);
  return {draft.spec, effective_values(keys, draft),
          read ? with_handed_strategy(text, *read) : std::string(text), draft.notes, draft.turned_off};
}

}  // namespace

ParsedJob parse_job_text(std::string_view text, const std::string& name,
                         const std::vector<std::string>& overrides) {
  return parse(text, name, overrides, Reader::launcher);
}

ParsedJob parse_handed_job(std::string_view text, const std::string& name,
                           const std::vector<std::string>& overrides) {
  return parse(text, name, overrides, Reader::rank);
}

ParsedJob parse_job_file(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_job_text(read_file(path, kJsonBytesLimit), path, overrides);
}

}  // namespace fleetrun::job
