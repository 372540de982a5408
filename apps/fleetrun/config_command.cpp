#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/json/json_reader.h"
#include "base/system/standard_output.h"
#include "base/text/printable.h"
#include "commands.h"
#include "job/job_schema.h"
#include "job/parse_job.h"

namespace fleetrun {
namespace {

struct ConfigOptions {
  enum class Show { values, json, schema, keys };
  Show show = Show::values;
  std::string file;
  std::vector<std::string> overrides;
};

using Show = ConfigOptions::Show;

Show what_to_show(const FoundFlags& found) {
  if (found.has("--keys")) return Show::keys;
  if (found.has("--schema")) return Show::schema;
  return found.has("--json") ? Show::json : Show::values;
}

ConfigOptions parse_config_options(const FoundFlags& found) {
  ConfigOptions options{.show = what_to_show(found)};
  const bool needs_file = options.show == Show::values || options.show == Show::json;
  if (needs_file && found.rest.empty())
    throw Error(ErrorKind::usage, "found no job file, wanted one", "fleetrun config --help");
  if (found.rest.empty()) return options;
  options.file = found.rest.front();
  options.overrides.assign(found.rest.begin() + 1, found.rest.end());
  return options;
}

// Three columns; a long value does not push the origins of all others to the right.
std::string describe_values(const std::vector<job::KeyValue>& values) {
  constexpr std::size_t kWidestValue = 30;  // characters
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  for (const job::KeyValue& value : values) {
    key_width = std::max(key_width, value.key.size());
    value_width = std::max(value_width, std::min(value.value.size(), kWidestValue));
  }
  std::string text;
  for (const job::KeyValue& value : values)
    text += fmt::format("{:{}}  {:{}}  {}\n", value.key, key_width, value.value, value_width, value.origin);
  return text;
}

std::string values_as_json(const job::ParsedJob& job) {
  JsonValue values = JsonValue::object();
  for (const job::KeyValue& value : job.values) {
    JsonValue entry = JsonValue::object();
    entry.add("value", read_json(value.value).root);
    entry.add("origin", value.origin);
    values.add(value.key, std::move(entry));
  }
  std::vector<JsonValue> notes;
  for (const std::string& note : job.notes) notes.push_back(JsonValue(note));
  JsonValue document = JsonValue::object();
  document.add("file", job.spec.file);
  document.add("values", std::move(values));
  document.add("notes", JsonValue::list(std::move(notes)));
  return to_json_lines(document);
}

std::string answer(const ConfigOptions& options) {
  switch (options.show) {
    case Show::schema:
      return to_json_lines(job::job_schema());
    case Show::keys:
      return job::job_key_table();
    case Show::json:
      return values_as_json(job::parse_job_file(options.file, options.overrides));
    case Show::values:
      break;
  }
  const job::ParsedJob job = job::parse_job_file(options.file, options.overrides);
  for (const std::string& note : job.notes) log_line("fleetrun", "note: " + note);
  return printable_lines(describe_values(job.values));
}

}  // namespace

int run_config_command(const FoundFlags& found, const Environment&) {
  print_answer(answer(parse_config_options(found)));
  return 0;
}

}  // namespace fleetrun
