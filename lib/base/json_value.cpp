#include "base/json_value.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/printable.h"

namespace fleetrun {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kLongestShownKey = 60;  // bytes of a key that is no plain word

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

bool is_container(const JsonValue& value) { return value.is(Kind::list) || value.is(Kind::object); }

std::string plain_text(const JsonValue& value) {
  switch (value.kind) {
    case Kind::boolean:
      return value.boolean ? "true" : "false";
    case Kind::integer:
      return fmt::format("{}", value.integer);
    case Kind::number:
      return std::isfinite(value.number) ? fmt::format("{}", value.number) : "null";
    case Kind::text:
      return json_quoted(value.text);
    default:
      return "null";
  }
}

// How the parts of a list or object are set apart: on one line, or a line each.
struct Layout {
  bool lines = false;
  int depth = 0;

  Layout deeper() const { return {lines, depth + 1}; }
  std::string start(bool first, bool flat) const {
    if (!lines || flat) return first ? "" : ", ";
    return fmt::format("{}\n{:{}}", first ? "" : ",", "", 2 * (depth + 1));
  }
  std::string end(bool flat) const { return lines && !flat ? fmt::format("\n{:{}}", "", 2 * depth) : ""; }
};

void write(const JsonValue& value, const Layout& layout, std::string& out) {
  if (value.is(Kind::list)) {
    const bool flat = std::none_of(value.items.begin(), value.items.end(), is_container);
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
    out += plain_text(value);
  }
}

}  // namespace

JsonValue JsonValue::of_boolean(bool value) {
  JsonValue result;
  result.kind = Kind::boolean;
  result.boolean = value;
  return result;
}

JsonValue JsonValue::of_integer(std::int64_t value) {
  JsonValue result;
  result.kind = Kind::integer;
  result.integer = value;
  result.number = static_cast<double>(value);
  result.text = fmt::format("{}", value);
  return result;
}

JsonValue JsonValue::of_number(double value) {
  JsonValue result;
  result.kind = Kind::number;
  result.number = value;
  result.text = fmt::format("{}", value);
  return result;
}

JsonValue JsonValue::of_text(std::string value) {
  JsonValue result;
  result.kind = Kind::text;
  result.text = std::move(value);
  return result;
}

JsonValue JsonValue::of_list(std::vector<JsonValue> values) {
  JsonValue result;
  result.kind = Kind::list;
  result.items = std::move(values);
  return result;
}

JsonValue JsonValue::of_object() {
  JsonValue result;
  result.kind = Kind::object;
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

void JsonValue::add(std::string key, JsonValue value) {
  const TextPosition where = value.position;
  members.push_back({std::move(key), where, std::move(value)});
}

std::string to_json(const JsonValue& value) {
  std::string out;
  write(value, {}, out);
  return out;
}

std::string to_json_lines(const JsonValue& value) {
  std::string out;
  write(value, {.lines = true}, out);
  return out + '\n';
}

std::string json_quoted(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out = "\"";
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<unsigned char>(valid[i]);
    const auto next = static_cast<unsigned char>(i + 1 < valid.size() ? valid[i + 1] : 0);
    if (byte == 0xC2 && next >= 0x80 &&
        next <= 0x9F) {  // U+0080..U+009F, the second set of control characters
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else if (byte == '"' || byte == '\\') {
      out += {'\\', valid[i]};
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += valid[i];
    }
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
