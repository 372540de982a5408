// One JSON value with everything below it, as plain data that knows where it was written; and its text again.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fleetrun {

// Both count from 1, columns in characters. Line 0: the value comes from no text.
struct TextPosition {
  int line = 0;
  int column = 0;
  auto operator<=>(const TextPosition&) const = default;
};

struct JsonMember;

// Plain values convert to it: json.add("rank", 3).
struct JsonValue {
  enum class Kind { null, boolean, integer, number, text, list, object };

  Kind kind = Kind::null;
  bool boolean = false;
  std::int64_t integer = 0;         // of an integer
  double number = 0;                // of an integer or number
  std::string text;                 // of a text; of an integer or number as it was written
  std::vector<JsonValue> items;     // of a list
  std::vector<JsonMember> members;  // of an object, as written
  TextPosition position;            // of its first character

  JsonValue() = default;
  JsonValue(bool value);
  JsonValue(double value);
  JsonValue(std::string value);
  JsonValue(std::string_view value);
  JsonValue(const char* value);
  template <std::integral Integer>
  JsonValue(Integer value);  // a number when it does not fit into 64 bits with a sign
  template <typename T>
  JsonValue(const std::optional<T>& value);  // null when there is none
  template <typename T>
  JsonValue(const std::vector<T>& values);
  static JsonValue list(std::vector<JsonValue> values);
  static JsonValue object(std::initializer_list<std::pair<std::string_view, JsonValue>> members);
  static JsonValue object();

  bool is(Kind wanted) const { return kind == wanted; }
  const JsonMember* find(std::string_view key) const;  // null when it is not there
  JsonMember* find(std::string_view key);
  const JsonValue* find(std::string_view key,
                        Kind wanted) const;  // the value, null when it is not of this kind
  void add(std::string key, JsonValue value);
};

struct JsonMember {
  std::string key;
  TextPosition position;  // of the key
  JsonValue value;
};

template <std::integral Integer>
JsonValue::JsonValue(Integer value) {
  if (!std::in_range<std::int64_t>(value)) {
    *this = JsonValue(static_cast<double>(value));
    return;
  }
  kind = Kind::integer;
  integer = static_cast<std::int64_t>(value);
  number = static_cast<double>(value);
  text = std::to_string(value);
}

template <typename T>
JsonValue::JsonValue(const std::optional<T>& value) {
  if (value) *this = JsonValue(*value);
}

template <typename T>
JsonValue::JsonValue(const std::vector<T>& values) {
  kind = Kind::list;
  for (const T& value : values) items.emplace_back(value);
}

std::string to_json(const JsonValue& value);  // on one line: {"a": [1, 2]}
// Indented, with a newline at the end. Lists of plain values are on one line.
std::string to_json_lines(const JsonValue& value);
// The same with each item of a list on its own line, and with a decimal point in every number that is not an integer.
std::string to_json_tall(const JsonValue& value);

// The text in double quotes, with everything escaped that a terminal could take for a command.
std::string json_quoted(std::string_view text);

// The same of at most `limit` bytes of the text, followed by "..." when there is more.
std::string shortened_quote(std::string_view text, std::size_t limit);

// "train.epochs", "model.hidden[2]": how people name a value. Quotes keys that are not plain words, cuts long
// ones.
std::string child_path(const std::string& parent, std::string_view key);
std::string item_path(const std::string& parent, std::size_t index);

}  // namespace fleetrun
