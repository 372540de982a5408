#include "launch/cli/config_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/system/file.h"
#include "base/text/suggest.h"
#include "job/read/draft.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;
using Problems = std::vector<JsonProblem>;

std::string key_of(const Flag& flag) { return flag.name().substr(2); }

// All settings, but a file names no other file.
bool may_be_in_a_file(const Flag& flag) { return flag.show != nullptr && !flag.is_called("--config"); }

const Flag* flag_for(const std::string& key, const std::vector<Flag>& table) {
  for (const Flag& flag : table)
    if (may_be_in_a_file(flag) && flag.is_called("--" + key)) return &flag;
  return nullptr;
}

std::string describe_unknown(const std::string& key, const std::vector<Flag>& table) {
  std::vector<std::string> known;
  for (const Flag& flag : table)
    if (may_be_in_a_file(flag)) known.push_back(key_of(flag));
  const auto meant = closest(key, known);
  return "found a name that is not a flag" + (meant ? fmt::format("; did you mean {}?", *meant) : "");
}

// As it would stand on the command line; nothing for lists, objects and null.
std::optional<std::string> text_of(const JsonValue& value) {
  if (value.is(Kind::text) || value.is(Kind::integer) || value.is(Kind::number)) return value.text;
  if (value.is(Kind::boolean)) return value.boolean ? "true" : "false";
  return std::nullopt;
}

bool has_problem(const Problems& problems, const std::string& key) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const JsonProblem& problem) { return problem.path == key; });
}

std::vector<std::string> texts_in(const JsonMember& member, const Flag& flag, Problems& problems) {
  const bool list = flag.repeats && member.value.is(Kind::list);
  const std::vector<JsonValue> values = list ? member.value.items : std::vector{member.value};
  std::vector<std::string> texts;
  for (const JsonValue& value : values) {
    const auto text = text_of(value);
    if (!text)
      problems.push_back({value.position, member.key,
                          fmt::format("found no plain value, wanted {}",
                                      flag.repeats ? "a text or a list of texts" : "a text or a number")});
    else if (!text->empty())
      texts.push_back(*text);
  }
  return texts;
}

}  // namespace

std::vector<std::string> ConfigFile::texts_of(const Flag& flag) const {
  const auto found = texts.find(flag.name());
  return found == texts.end() ? std::vector<std::string>() : found->second;
}

Source ConfigFile::source_of(const Flag& flag) const {
  return {Origin::file, fmt::format("{}: {}", path, key_of(flag))};
}

ConfigFile read_config_file(const std::string& path, const std::vector<Flag>& table) {
  const JsonDocument document = read_json(read_file(path, kJsonBytesLimit));
  Problems problems = document.problems;
  ConfigFile file{.path = path};
  if (document.complete && !document.root.is(Kind::object))
    problems.push_back(
        {document.root.position, "", "found no object, wanted {\"name of a flag\": value, ...}"});
  for (const JsonMember& member : document.root.members) {
    const Flag* flag = flag_for(member.key, table);
    if (flag == nullptr)
      problems.push_back({member.position, member.key, describe_unknown(member.key, table)});
    else if (!has_problem(problems,
                          member.key))  // NaN is not a number of JSON, which the reader has reported
      file.texts[flag->name()] = texts_in(member, *flag, problems);
  }
  if (!problems.empty()) throw Error(ErrorKind::config, job::describe_problems(path, problems));
  return file;
}

}  // namespace fleetrun::launch
