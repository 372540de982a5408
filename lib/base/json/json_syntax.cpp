#include "base/json/json_syntax.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "base/text/utf8.h"

namespace fleetrun {
namespace {

using After = JsonBreak::After;
using Inside = JsonBreak::Inside;

constexpr std::size_t kLongestShownWord = 30;  // bytes of the offending word that are quoted

bool is_space(char letter) { return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r'; }

std::size_t skip_space(std::string_view text, std::size_t offset) {
  while (offset < text.size() && is_space(text[offset])) ++offset;
  return offset;
}

// The run of letters, digits and signs that begins here; one character when there is none.
std::string_view word_at(std::string_view text, std::size_t offset) {
  std::size_t end = offset;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_' ||
                               text[end] == '.' || text[end] == '+' || text[end] == '-'))
    ++end;
  if (end == offset) end += utf8_character_length(text, offset);
  return text.substr(offset, std::min(end - offset, kLongestShownWord));
}

// A word as it is, punctuation in quotes, anything that a terminal could obey by its number.
std::string shown(std::string_view word) {
  if (std::isalnum(static_cast<unsigned char>(word.front())) != 0) return std::string(word);
  if (word.size() > 1 && static_cast<unsigned char>(word.front()) < 0x80)
    return std::string(word);  // -inf, +1, .5
  const std::string quoted = json_quoted(word);
  return fmt::format("'{}'", word == "\"" ? word : std::string_view(quoted).substr(1, quoted.size() - 2));
}

bool wants_key(const JsonBreak& broken) {
  return broken.inside == Inside::object && (broken.after == After::opening || broken.after == After::comma);
}

bool wants_value(const JsonBreak& broken) {
  if (broken.after == After::key || broken.after == After::value) return false;
  return !wants_key(broken);
}

std::string what_follows(const JsonBreak& broken) {
  if (broken.after == After::key) return "':' and a value";
  if (broken.after == After::value && broken.inside == Inside::nothing)
    return "nothing after the end of the JSON value";
  if (broken.after == After::value) return broken.inside == Inside::list ? "',' or ']'" : "',' or '}'";
  return wants_key(broken) ? "a key in double quotes" : "a value";
}

std::string describe_end(const JsonBreak& broken) {
  if (broken.inside == Inside::nothing) return "the text is empty, wanted a value";
  return fmt::format("the text ends inside the {} that begins at {}:{}, wanted {}",
                     broken.inside == Inside::list ? "list" : "object", broken.opened.line,
                     broken.opened.column, what_follows(broken));
}

bool is_hex(char letter) { return std::isxdigit(static_cast<unsigned char>(letter)) != 0; }

// What is wrong with the escape whose backslash is at `start`; nothing when it is one, or the text ends in
// it.
std::optional<JsonFault> find_escape_fault(std::string_view text, std::size_t start) {
  if (start + 1 == text.size()) return std::nullopt;
  const std::string_view escape = text.substr(start + 1, utf8_character_length(text, start + 1));
  if (escape == "u") {
    const std::string_view digits = text.substr(std::min(start + 2, text.size()), 4);
    if (digits.size() == 4 && std::all_of(digits.begin(), digits.end(), is_hex)) return std::nullopt;
    return JsonFault{start, "\\u without four hexadecimal digits, wanted \\u0000 to \\uffff"};
  }
  if (std::string_view("\"\\/bfnrt").find(escape) != std::string_view::npos) return std::nullopt;
  return JsonFault{
      start, fmt::format("a backslash before {}, wanted one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX",
                         shown(escape))};
}

// What is wrong with the quoted text that begins at `start`; nothing when it is whole.
std::optional<JsonFault> find_text_fault(std::string_view text, std::size_t start) {
  for (std::size_t i = start + 1; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '"') return std::nullopt;
    if (byte == '\n' || byte == '\r')
      return JsonFault{start,
                       "a text that is not closed on its line, wanted '\"' (a line break is written \\n)"};
    if (byte < 0x20)
      return JsonFault{
          i, fmt::format("the control character U+{:04X} in a text, wanted it written as \\u{:04x}", byte,
                         byte)};
    if (byte != '\\') continue;
    if (auto fault = find_escape_fault(text, i)) return fault;
    ++i;
  }
  return JsonFault{start, "a text that is never closed, wanted '\"' at its end"};
}

// What a value that people write but JSON does not know should be.
std::string wanted_instead_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTable = {{
      {"nan", "a finite number"},
      {"-nan", "a finite number"},
      {"inf", "a finite number"},
      {"-inf", "a finite number"},
      {"infinity", "a finite number"},
      {"-infinity", "a finite number"},
      {"true", "true in small letters"},
      {"false", "false in small letters"},
      {"none", "a value (JSON has no None, only null)"},
  }};
  std::string small(word);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  for (const auto& [name, wanted] : kTable)
    if (small == name) return std::string(wanted);
  const auto first = static_cast<unsigned char>(word.front());
  if (std::isdigit(first) != 0 || first == '-' || first == '+' || first == '.')
    return "a number such as 64, -0.5 or 1e-4";
  return std::isalpha(first) != 0 ? "a value (texts stand in double quotes)" : "a value";
}

std::string describe_value(std::string_view word) {
  return fmt::format("{}, wanted {}", shown(word), wanted_instead_of(word));
}

bool is_comment(std::string_view rest) {
  return rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with("#");
}

// What is wrong with the text at `at`, where `broken` says what may follow.
JsonFault diagnose_at(std::string_view text, std::size_t at, const JsonBreak& broken) {
  if (is_comment(text.substr(at))) return {at, "a comment, wanted none: JSON has no comments"};
  const bool begins = wants_key(broken) || wants_value(broken);
  if (begins && text[at] == '\'') return {at, "a single quote, wanted double quotes"};
  if (begins && text[at] == '"') {
    if (auto fault = find_text_fault(text, at)) return *fault;
    return {at, "a text with half of a surrogate pair, wanted both halves, as in \\ud83d\\ude00"};
  }
  const std::string_view word = word_at(text, at);
  if (wants_value(broken)) return {at, describe_value(word)};
  return {at, fmt::format("{}, wanted {}", shown(word), what_follows(broken))};
}

}  // namespace

JsonFault diagnose_json(std::string_view text, JsonBreak broken) {
  std::size_t at = skip_space(text, broken.offset);
  const char next = at < text.size() ? text[at] : '\0';
  const bool is_comma = next == ',' && broken.after == After::value && broken.inside != Inside::nothing;
  if (is_comma || (next == ':' && broken.after == After::key)) {
    const std::size_t separator = std::exchange(at, skip_space(text, at + 1));
    broken.after = is_comma ? After::comma : After::colon;
    if (is_comma && at < text.size() && (text[at] == ']' || text[at] == '}'))
      return {separator, fmt::format("a comma before '{}', wanted none after the last value", text[at])};
  }
  return at == text.size() ? JsonFault{at, describe_end(broken)} : diagnose_at(text, at, broken);
}

std::optional<JsonFault> find_encoding_fault(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) return JsonFault{0, "a byte order mark, wanted UTF-8 without one"};
  const bool is_wide = text.size() >= 2 && (text[0] == '\0') != (text[1] == '\0');
  if (is_wide || text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return JsonFault{0, "UTF-16 text, wanted UTF-8"};
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t length = utf8_character_length(text, offset);
    if (text[offset] == '\0') return JsonFault{offset, "the character U+0000, wanted text without it"};
    if (length == 0)
      return JsonFault{
          offset, fmt::format("the byte 0x{:02X}, wanted UTF-8", static_cast<unsigned char>(text[offset]))};
    offset += length;
  }
  return std::nullopt;
}

}  // namespace fleetrun
