// One JSON value with everything below it, as plain data that knows where it was written; and its text again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun {

// Both count from 1, columns in characters. Line 0: the value comes from no text.
struct TextPosition {
  int line = 0;
  int column = 0;
  auto operator<=>(const TextPosition&) const = default;
};

struct JsonMember;

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

  static JsonValue of_boolean(bool value);
  static JsonValue of_integer(std::int64_t value);
  static JsonValue of_number(double value);
  static JsonValue of_text(std::string value);
  static JsonValue of_list(std::vector<JsonValue> values);
  static JsonValue of_object();

  bool is(Kind wanted) const { return kind == wanted; }
  const JsonMember* find(std::string_view key) const;  // null when it is not there
  JsonMember* find(std::string_view key);
  void add(std::string key, JsonValue value);
};

struct JsonMember {
  std::string key;
  TextPosition position;  // of the key
  JsonValue value;
};

std::string to_json(const JsonValue& value);  // on one line: {"a": [1, 2]}
std::string to_json_lines(
    const JsonValue& value);  // indented, lists of plain values on one line, newline at the end

// The text in double quotes, with everything escaped that a terminal could take for a command.
std::string json_quoted(std::string_view text);

// The same of at most `limit` bytes of the text, with "..." behind it when there is more.
std::string shortened_quote(std::string_view text, std::size_t limit);

// "train.epochs", "model.hidden[2]": how people name a value. Keys that are no plain words are quoted, long
// ones cut.
std::string child_path(const std::string& parent, std::string_view key);
std::string item_path(const std::string& parent, std::size_t index);

}  // namespace fleetrun
