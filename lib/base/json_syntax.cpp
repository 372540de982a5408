#include "base/json_syntax.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"

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

std::string_view name_of(Inside inside) {
  switch (inside) {
    case Inside::list:
      return "list";
    case Inside::object:
      return "object";
    case Inside::nothing:
      break;
  }
  return "text";
}

std::string what_follows(const JsonBreak& broken) {
  const bool in_list = broken.inside == Inside::list;
  switch (broken.after) {
    case After::start:
      return "a value";
    case After::opening:
      return in_list ? "a value or ']'" : "a key in double quotes or '}'";
    case After::key:
      return "':' and a value";
    case After::value:
      return broken.inside == Inside::nothing ? "nothing more" : in_list ? "',' or ']'" : "',' or '}'";
    case After::comma:
      break;
  }
  return in_list ? "a value" : "a key in double quotes";
}

std::string describe_end(const JsonBreak& broken) {
  if (broken.inside == Inside::nothing) return "the text ends here, wanted a value";
  return fmt::format("the text ends inside the {} that begins at {}:{}, wanted {}", name_of(broken.inside),
                     broken.opened.line, broken.opened.column, what_follows(broken));
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

std::optional<std::string> wanted_instead_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTable = {{
      {"nan", "a finite number"},
      {"-nan", "a finite number"},
      {"inf", "a finite number"},
      {"-inf", "a finite number"},
      {"infinity", "a finite number"},
      {"-infinity", "a finite number"},
      {"true", "true in small letters"},
      {"false", "false in small letters"},
      {"none", "a value (there is no None in JSON)"},
  }};
  std::string small(word);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  for (const auto& [name, wanted] : kTable)
    if (small == name) return std::string(wanted);
  return std::nullopt;
}

std::string describe_value(std::string_view word) {
  if (const auto wanted = wanted_instead_of(word)) return fmt::format("{}, wanted {}", word, *wanted);
  const char first = word.front();
  if (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '-' || first == '+' || first == '.')
    return fmt::format("{}, wanted a number such as 64, -0.5 or 1e-4", word);
  if (std::isalpha(static_cast<unsigned char>(first)) != 0)
    return fmt::format("{}, wanted a value (texts stand in double quotes)", word);
  return fmt::format("{}, wanted a value", shown(word));
}

// Something stands at `at` where a key or a value has to begin.
JsonFault diagnose_beginning(std::string_view text, std::size_t at, bool key_wanted) {
  const char first = text[at];
  if (first == '"')
    if (auto fault = find_text_fault(text, at)) return *fault;
  if (first == '\'') return {at, "a single quote, wanted double quotes"};
  if (first == ',') return {at, fmt::format("a comma too many, wanted {}", key_wanted ? "a key" : "a value")};
  const std::string_view word = word_at(text, at);
  if (first == '"')
    return {at, "a text with half of a surrogate pair, wanted both halves, as in \\ud83d\\ude00"};
  if (key_wanted) return {at, fmt::format("{}, wanted a key in double quotes", shown(word))};
  return {at, describe_value(word)};
}

bool is_comment(std::string_view rest) {
  return rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with("#");
}

JsonFault diagnose_after_value(std::string_view text, std::size_t at, const JsonBreak& broken) {
  if (broken.inside == Inside::nothing)
    return {at,
            fmt::format("{} after the end of the JSON value, wanted nothing more", shown(word_at(text, at)))};
  const bool key_wanted = broken.inside == Inside::object;
  if (text[at] != ',') {
    if (text[at] == '"' || text[at] == '{' || text[at] == '[')
      return {at, fmt::format("'{}' right after a value, wanted a comma between them", text[at])};
    return {at, fmt::format("{}, wanted {}", shown(word_at(text, at)), what_follows(broken))};
  }
  const std::size_t next = skip_space(text, at + 1);
  if (next == text.size())
    return {next,
            describe_end(
                {.offset = at, .after = After::comma, .inside = broken.inside, .opened = broken.opened})};
  if (is_comment(text.substr(next))) return {next, "a comment, wanted none: JSON has no comments"};
  if (text[next] == ']' || text[next] == '}')
    return {at, fmt::format("a comma before '{}', wanted none after the last value", text[next])};
  return diagnose_beginning(text, next, key_wanted);
}

}  // namespace

JsonFault diagnose_json(std::string_view text, const JsonBreak& broken) {
  const std::size_t at = skip_space(text, broken.offset);
  if (at == text.size())
    return {at, broken.after == After::start ? "the text is empty, wanted a value" : describe_end(broken)};
  if (is_comment(text.substr(at))) return {at, "a comment, wanted none: JSON has no comments"};
  if (broken.after == After::value) return diagnose_after_value(text, at, broken);
  if (broken.after != After::key) return diagnose_beginning(text, at, broken.inside == Inside::object);
  if (text[at] != ':')
    return {at, fmt::format("{} after a key, wanted ':' and a value", shown(word_at(text, at)))};
  const std::size_t value = skip_space(text, at + 1);
  if (value == text.size()) return {value, describe_end(broken)};
  if (is_comment(text.substr(value))) return {value, "a comment, wanted none: JSON has no comments"};
  if (text[value] == ',' || text[value] == '}')
    return {value, fmt::format("'{}' after a key and ':', wanted a value", text[value])};
  return diagnose_beginning(text, value, false);
}

std::optional<JsonFault> find_encoding_fault(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) return JsonFault{0, "a byte order mark, wanted UTF-8 without one"};
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return JsonFault{0, "UTF-16 text, wanted UTF-8"};
  if (text.size() >= 2 && (text[0] == '\0') != (text[1] == '\0'))
    return JsonFault{0, "UTF-16 text without a byte order mark, wanted UTF-8"};
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
