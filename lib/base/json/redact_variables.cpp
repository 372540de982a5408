#include "base/json/redact_variables.h"

#include <string_view>

#include "base/json/json_reader.h"
#include "base/text/redact.h"

namespace fleetrun {
namespace {

constexpr std::string_view kVariable = "env.";
constexpr std::string_view kObject = "env=";

// A value that should have been a text may be anything.
bool redact_member(JsonMember& member) {
  const JsonValue& value = member.value;
  const std::string text = value.is(JsonValue::Kind::text) ? value.text : to_json(value);
  const std::string shown = redact(member.key, text);
  if (shown == text) return false;
  member.value = JsonValue(shown);
  return true;
}

// In an object that breaks off, nobody can tell the values from the names.
std::string redact_object(const std::string& text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos || text[start] != '{') return text;
  JsonDocument document = read_json(text);
  if (!document.complete) return "***";
  bool has_secrets = false;
  for (JsonMember& member : document.root.members)
    if (redact_member(member)) has_secrets = true;
  return has_secrets ? to_json(document.root) : text;
}

std::string redact_word(const std::string& word) {
  if (word.starts_with(kVariable))
    return std::string(kVariable) + redact_setting(word.substr(kVariable.size()));
  if (word.starts_with(kObject)) return std::string(kObject) + redact_object(word.substr(kObject.size()));
  return word;
}

}  // namespace

std::vector<std::string> redact_variables(std::vector<std::string> words) {
  for (std::string& word : words) word = redact_word(word);
  return words;
}

}  // namespace fleetrun
