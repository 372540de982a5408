#include "base/json/json_value.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/text/printable.h"
#include "base/text/utf8.h"

namespace fleetrun {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kLongestShownKey = 60;  // bytes of a key that is not a plain word

bool is_plain_word(std::string_view key) {
  return !key.empty() && key.size() <= kLongestShownKey &&
         std::all_of(key.begin(), key.end(), [](char letter) {
           return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-';
         });
}

// At most `limit` bytes of UTF-8 text, cut between characters.
std::string_view cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
  return text.substr(0, limit);
}

unsigned code_point_of(std::string_view character) {
  constexpr std::array kMasks = {0x7FU, 0x1FU, 0x0FU, 0x07U};  // of the first byte, by the number of bytes
  unsigned code = static_cast<unsigned char>(character.front()) & kMasks.at(character.size() - 1);
  for (const char byte : character.substr(1)) code = code << 6U | (static_cast<unsigned char>(byte) & 0x3FU);
  return code;
}

// Then its quotation needs no escapes.
bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
  });
}

bool is_container(const JsonValue& value) { return value.is(Kind::list) || value.is(Kind::object); }

enum class Style { line, lines, tall };

std::string number_text(double number, Style style) {
  if (!std::isfinite(number)) return "null";
  std::string text = fmt::format("{}", number);
  if (style == Style::tall && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string plain_text(const JsonValue& value, Style style) {
  switch (value.kind) {
    case Kind::boolean:
      return value.boolean ? "true" : "false";
    case Kind::integer:
      return fmt::format("{}", value.integer);
    case Kind::number:
      return number_text(value.number, style);
    case Kind::text:
      return json_quoted(value.text);
    default:
      return "null";
  }
}

// How the parts of a list or object are set apart: on one line, or a line each.
struct Layout {
  Style style = Style::line;
  int depth = 0;

  Layout deeper() const { return {style, depth + 1}; }
  bool is_flat(const JsonValue& list) const {
    return style == Style::tall ? list.items.empty()
                                : std::none_of(list.items.begin(), list.items.end(), is_container);
  }
  std::string start(bool first, bool flat) const {
    if (style == Style::line || flat) return first ? "" : ", ";
    return fmt::format("{}\n{:{}}", first ? "" : ",", "", 2 * (depth + 1));
  }
  std::string end(bool flat) const {
    return style == Style::line || flat ? "" : fmt::format("\n{:{}}", "", 2 * depth);
  }
};

void write(const JsonValue& value, const Layout& layout, std::string& out) {
  if (value.is(Kind::list)) {
    const bool flat = layout.is_flat(value);
    out += '[';
    for (const JsonValue& item : value.items) {
      out += layout.start(&item == value.items.data(), flat);
      write(item, layout.deeper(), out);
    }
    out += layout.end(flat) + ']';
  } else if (value.is(Kind::object)) {
    const bool flat = value.members.empty();
    out += '{';
    for (const JsonMember& member : value.members) {
      out += layout.start(&member == value.members.data(), flat) + json_quoted(member.key) + ": ";
      write(member.value, layout.deeper(), out);
    }
    out += layout.end(flat) + '}';
  } else {
    out += plain_text(value, layout.style);
  }
}

std::string write(const JsonValue& value, Style style) {
  std::string out;
  write(value, {.style = style}, out);
  return out;
}

}  // namespace

JsonValue::JsonValue(bool value) : kind(Kind::boolean), boolean(value) {}
JsonValue::JsonValue(double value) : kind(Kind::number), number(value), text(fmt::format("{}", value)) {}
JsonValue::JsonValue(std::string value) : kind(Kind::text), text(std::move(value)) {}
JsonValue::JsonValue(std::string_view value) : JsonValue(std::string(value)) {}
JsonValue::JsonValue(const char* value) : JsonValue(std::string(value)) {}

JsonValue JsonValue::list(std::vector<JsonValue> values) {
  JsonValue result;
  result.kind = Kind::list;
  result.items = std::move(values);
  return result;
}

JsonValue JsonValue::object() {
  JsonValue result;
  result.kind = Kind::object;
  return result;
}

JsonValue JsonValue::object(std::initializer_list<std::pair<std::string_view, JsonValue>> members) {
  JsonValue result = object();
  for (const auto& [key, value] : members) result.add(std::string(key), value);
  return result;
}

const JsonMember* JsonValue::find(std::string_view key) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [key](const JsonMember& member) { return member.key == key; });
  return found == members.end() ? nullptr : &*found;
}

JsonMember* JsonValue::find(std::string_view key) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [key](const JsonMember& member) { return member.key == key; });
  return found == members.end() ? nullptr : &*found;
}

const JsonValue* JsonValue::find(std::string_view key, Kind wanted) const {
  const JsonMember* const member = find(key);
  return member != nullptr && member->value.is(wanted) ? &member->value : nullptr;
}

void JsonValue::add(std::string key, JsonValue value) {
  const TextPosition where = value.position;
  members.push_back({std::move(key), where, std::move(value)});
}

std::string to_json(const JsonValue& value) { return write(value, Style::line); }
std::string to_json_lines(const JsonValue& value) { return write(value, Style::lines) + '\n'; }
std::string to_json_tall(const JsonValue& value) { return write(value, Style::tall) + '\n'; }

std::string json_quoted(std::string_view text) {
  if (is_plain_ascii(text)) return fmt::format("\"{}\"", text);
  const std::string valid = valid_utf8(text);
  std::string out = "\"";
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view character = rest.substr(0, utf8_character_length(rest, 0));
    rest.remove_prefix(character.size());
    if (character == "\"" || character == "\\")
      out.append("\\").append(character);
    else if (character == "\n")
      out += "\\n";
    else if (character == "\t")
      out += "\\t";
    else if (is_unprintable(character))
      out += fmt::format("\\u{:04x}", code_point_of(character));
    else
      out += character;
  }
  return out + '"';
}

std::string shortened_quote(std::string_view text, std::size_t limit) {
  const std::string_view shown = cut(text, limit);
  return json_quoted(shown) + (shown.size() < text.size() ? "..." : "");
}

std::string child_path(const std::string& parent, std::string_view key) {
  const std::string name = is_plain_word(key) ? std::string(key) : shortened_quote(key, kLongestShownKey);
  return parent.empty() ? name : parent + '.' + name;
}

std::string item_path(const std::string& parent, std::size_t index) {
  return fmt::format("{}[{}]", parent, index);
}

}  // namespace fleetrun
