#include "launch/cli/config_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/suggest.h"
#include "job/draft.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;
using Problems = std::vector<JsonProblem>;

std::string key_of(const Option& option) { return option.name().substr(2); }

// Shown flags with a value; a file that names another file is none.
bool may_be_in_a_file(const Option& option) {
  return option.show != nullptr && !option.is_called("--config") && !option.is_called("--show_config") &&
         !option.is_called("--dry_run");
}

const Option* option_for(const std::string& key, const std::vector<Option>& table) {
  for (const Option& option : table)
    if (may_be_in_a_file(option) && option.is_called("--" + key)) return &option;
  return nullptr;
}

std::string describe_unknown(const std::string& key, const std::vector<Option>& table) {
  std::vector<std::string> known;
  for (const Option& option : table)
    if (may_be_in_a_file(option)) known.push_back(key_of(option));
  const auto meant = closest(key, known);
  return "found a name that is no flag" + (meant ? fmt::format("; did you mean {}?", *meant) : "");
}

// As it would stand on the command line; nothing for lists, objects and null.
std::optional<std::string> text_of(const JsonValue& value) {
  if (value.is(Kind::text) || value.is(Kind::integer) || value.is(Kind::number)) return value.text;
  if (value.is(Kind::boolean)) return value.boolean ? "true" : "false";
  return std::nullopt;
}

std::vector<std::string> texts_in(const JsonMember& member, const Option& option, Problems& problems) {
  const bool list = option.repeats && member.value.is(Kind::list);
  const std::vector<JsonValue> values = list ? member.value.items : std::vector{member.value};
  std::vector<std::string> texts;
  for (const JsonValue& value : values) {
    const auto text = text_of(value);
    if (!text)
      problems.push_back({value.position, member.key,
                          fmt::format("found no plain value, wanted {}",
                                      option.repeats ? "a text or a list of texts" : "a text or a number")});
    else if (!text->empty())
      texts.push_back(*text);
  }
  return texts;
}

}  // namespace

std::vector<std::string> OptionFile::texts_of(const Option& option) const {
  const auto found = texts.find(option.name());
  return found == texts.end() ? std::vector<std::string>() : found->second;
}

Source OptionFile::source_of(const Option& option) const {
  return {Origin::file, fmt::format("{}: {}", path, key_of(option))};
}

OptionFile read_option_file(const std::string& path, const std::vector<Option>& table) {
  const JsonDocument document = read_json(read_file(path, kJsonBytesLimit));
  Problems problems = document.problems;
  OptionFile file{.path = path};
  if (document.complete && !document.root.is(Kind::object))
    problems.push_back(
        {document.root.position, "", "found no object, wanted {\"name of a flag\": value, ...}"});
  for (const JsonMember& member : document.root.members) {
    const Option* option = option_for(member.key, table);
    if (option == nullptr)
      problems.push_back({member.position, member.key, describe_unknown(member.key, table)});
    else
      file.texts[option->name()] = texts_in(member, *option, problems);
  }
  if (!problems.empty()) throw Error(ErrorKind::config, job::describe_problems(path, problems));
  return file;
}

}  // namespace fleetrun::launch
