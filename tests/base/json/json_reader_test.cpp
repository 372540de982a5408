#include "base/json/json_reader.h"

#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace fleetrun::json_reader_test {
namespace {

using Kind = JsonValue::Kind;

// "line:column path: message" of each problem, a line each.
std::string problems_of(std::string_view text) {
  std::string lines;
  for (const JsonProblem& problem : read_json(text).problems)
    lines += fmt::format("{}{}:{} {}: {}", lines.empty() ? "" : "\n", problem.position.line,
                         problem.position.column, problem.path, problem.message);
  return lines;
}

TEST_CASE("every kind of value is read with its value") {
  const JsonDocument document =
      read_json(R"({"a": null, "b": true, "c": -7, "d": 6.5e1, "e": "x\n\u00e9", "f": [1, [2]], "g": {}})");
  CHECK(document.complete);
  CHECK(document.problems.empty());
  const JsonValue& root = document.root;
  CHECK(root.find("a")->value.is(Kind::null));
  CHECK(root.find("b")->value.boolean);
  CHECK(root.find("c")->value.integer == -7);
  CHECK(root.find("c")->value.number == -7.0);
  CHECK(root.find("d")->value.is(Kind::number));
  CHECK(root.find("d")->value.number == 65.0);
  CHECK(root.find("d")->value.text == "6.5e1");
  CHECK(root.find("e")->value.text == "x\n\u00e9");
  CHECK(root.find("f")->value.items[1].items[0].integer == 2);
  CHECK(root.find("g")->value.is(Kind::object));
  CHECK(root.find("h") == nullptr);
}

TEST_CASE("values and keys know where they begin, in characters") {
  const JsonDocument document = read_json("{\n  \"k\u00e9y\" : [10,\t\"\\\"\", {\"a\":1}] ,\r\n  \"b\":2\n}");
  REQUIRE(document.complete);
  const JsonMember& first = document.root.members[0];
  CHECK(document.root.position == TextPosition{1, 1});
  CHECK(first.position == TextPosition{2, 3});
  CHECK(first.value.position == TextPosition{2, 11});
  CHECK(first.value.items[0].position == TextPosition{2, 12});
  CHECK(first.value.items[1].position == TextPosition{2, 16});
  CHECK(first.value.items[2].position == TextPosition{2, 22});
  CHECK(first.value.items[2].members[0].position == TextPosition{2, 23});
  CHECK(first.value.items[2].members[0].value.position == TextPosition{2, 27});
  CHECK(document.root.members[1].position == TextPosition{3, 3});
  CHECK(document.root.members[1].value.position == TextPosition{3, 7});
}

TEST_CASE("numbers are exact, whole ones as far as 64 bits go") {
  const JsonValue root =
      read_json("[9223372036854775807, -9223372036854775808, 9223372036854775808, 0.1, 1e-400]").root;
  CHECK(root.items[0].integer == INT64_MAX);
  CHECK(root.items[1].integer == INT64_MIN);
  CHECK(root.items[2].is(Kind::number));
  CHECK(root.items[2].text == "9223372036854775808");
  CHECK(root.items[3].number == 0.1);
  CHECK(root.items[4].number == 0.0);
}

TEST_CASE("numbers that do not fit are named and reading goes on") {
  CHECK(problems_of(R"({"a": {"b": [1e309, -1e400]}, "c": 1})") ==
        "1:14 a.b[0]: found 1e309, wanted a number that fits into 64 bits (up to about 1.8e308)\n"
        "1:21 a.b[1]: found -1e400, wanted a number that fits into 64 bits (up to about 1.8e308)");
  const JsonDocument document = read_json(R"({"a": 1e309, "b": -1e309})");
  CHECK(document.complete);
  CHECK(document.root.find("a")->value.number == HUGE_VAL);
  CHECK(document.root.find("b")->value.number == -HUGE_VAL);
  CHECK(problems_of(R"({"a": 1e99999})") ==
        "1:7 a: found 1e99999, wanted a number that fits into 64 bits (up to about 1.8e308)");
}

TEST_CASE("a key that comes twice is named with both places") {
  CHECK(problems_of("{\"a\": 1,\n \"x\": {\"b\": 1, \"b\": 2},\n \"a\": 2, \"a\": 3}") ==
        "2:16 x.b: found the key again, wanted it once; it is first at 2:8\n"
        "3:2 a: found the key again, wanted it once; it is first at 1:2\n"
        "3:10 a: found the key again, wanted it once; it is first at 1:2");
}

TEST_CASE("a text that breaks off is reported with what is open") {
  CHECK(problems_of("") == "1:1 : found the text is empty, wanted a value");
  CHECK(problems_of("{\"a\": {\n\"b\": [1") ==
        "2:8 a.b[1]: found the text ends inside the list that begins at 2:6, wanted ',' or ']'");
  CHECK(problems_of("{\"a\"") ==
        "1:5 a: found the text ends inside the object that begins at 1:1, wanted ':' and a value");
  CHECK(problems_of("{\"a\": 1,") ==
        "1:9 : found the text ends inside the object that begins at 1:1, wanted a key in double quotes");
  CHECK(problems_of("{\"a\": \"xyz") == "1:7 a: found a text that is never closed, wanted '\"' at its end");
  CHECK(problems_of("[\"a\\") == "1:2 [0]: found a text that is never closed, wanted '\"' at its end");
}

TEST_CASE("slips that people make in JSON are called by their names") {
  struct Slip {
    std::string_view text, expected;
  };
  const Slip kSlips[] = {
      {"{\"a\": 1,}", "1:8 : found a comma before '}', wanted none after the last value"},
      {"[1, 2, ]", "1:6 [2]: found a comma before ']', wanted none after the last value"},
      {"[1,, 2]", "1:4 [1]: found ',', wanted a value"},
      {"[1 2]", "1:4 [1]: found 2, wanted ',' or ']'"},
      {"{\"a\": 1 \"b\": 2}", "1:9 : found '\"', wanted ',' or '}'"},
      {"{\"a\" 1}", "1:6 a: found 1, wanted ':' and a value"},
      {"{\"a\": }", "1:7 a: found '}', wanted a value"},
      {"{a: 1}", "1:2 : found a, wanted a key in double quotes"},
      {"{1: 1}", "1:2 : found 1, wanted a key in double quotes"},
      {"{'a': 1}", "1:2 : found a single quote, wanted double quotes"},
      {"{} // done", "1:4 : found a comment, wanted none: JSON has no comments"},
      {"/* a */ {}", "1:1 : found a comment, wanted none: JSON has no comments"},
      {"{\"a\": # one\n1}", "1:7 a: found a comment, wanted none: JSON has no comments"},
      {"[1, // one\n2]", "1:5 [1]: found a comment, wanted none: JSON has no comments"},
      {"{\"a\": NaN}", "1:7 a: found NaN, wanted a finite number"},
      {"{\"a\": -Infinity}", "1:7 a: found -Infinity, wanted a finite number"},
      {"{\"a\": True}", "1:7 a: found True, wanted true in small letters"},
      {"{\"a\": None}", "1:7 a: found None, wanted a value (JSON has no None, only null)"},
      {"{\"a\": lenet}", "1:7 a: found lenet, wanted a value (texts stand in double quotes)"},
      {"{\"a\": +1}", "1:7 a: found +1, wanted a number such as 64, -0.5 or 1e-4"},
      {"{\"a\": .5}", "1:7 a: found .5, wanted a number such as 64, -0.5 or 1e-4"},
      {"{\"a\": 1.}", "1:7 a: found 1., wanted a number such as 64, -0.5 or 1e-4"},
      {"{\"a\": 0x10}", "1:8 : found x10, wanted ',' or '}'"},
      {"{} {}", "1:4 : found '{', wanted nothing after the end of the JSON value"},
      {"[1}", "1:3 [1]: found '}', wanted ',' or ']'"},
      {"[\x01]", "1:2 [0]: found '\\u0001', wanted a value"},
      {"[\u00e9]", "1:2 [0]: found '\u00e9', wanted a value"},
  };
  for (const Slip& slip : kSlips) {
    CAPTURE(slip.text);
    CHECK(problems_of(slip.text) == slip.expected);
    CHECK_FALSE(read_json(slip.text).complete);
  }
}

TEST_CASE("faults inside a text are reported at their character") {
  CHECK(problems_of("[\"ab\x01\"]") ==
        "1:5 [0]: found the control character U+0001 in a text, wanted it written as \\u0001");
  CHECK(problems_of("[\"ab\n\"]") ==
        "1:2 [0]: found a text that is not closed on its line, wanted '\"' (a line break is written \\n)");
  CHECK(problems_of(R"(["a\qb"])") ==
        R"(1:4 [0]: found a backslash before q, wanted one of \" \\ \/ \b \f \n \r \t \uXXXX)");
  CHECK(problems_of(R"(["\u12g4"])") ==
        R"(1:3 [0]: found \u without four hexadecimal digits, wanted \u0000 to \uffff)");
  CHECK(problems_of(R"(["\ud83d"])") ==
        R"(1:2 [0]: found a text with half of a surrogate pair, wanted both halves, as in \ud83d\ude00)");
  CHECK(problems_of(R"({"a": "x\u0000y"})") ==
        "1:7 a: found a text with the character U+0000, wanted one without");
  CHECK(problems_of(R"({"a\u0000": 1})") ==
        R"(1:2 "a\u0000": found a key with the character U+0000, wanted one without)");
}

TEST_CASE("another encoding is named, bytes that are not UTF-8 are shown") {
  using namespace std::string_view_literals;
  CHECK(problems_of("\xEF\xBB\xBF{}") == "1:1 : found a byte order mark, wanted UTF-8 without one");
  CHECK(problems_of("\xFF\xFE{\0}\0"sv) == "1:1 : found UTF-16 text, wanted UTF-8");
  CHECK(problems_of("{\0}\0"sv) == "1:1 : found UTF-16 text, wanted UTF-8");
  CHECK(problems_of("{}\0{}"sv) == "1:3 : found the character U+0000, wanted text without it");
  for (const std::string_view bad :
       {"\xFF", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3"})
    CHECK(problems_of(fmt::format("[\n\"{}\"]", bad)) ==
          fmt::format("2:2 : found the byte 0x{:02X}, wanted UTF-8", static_cast<unsigned char>(bad[0])));
  CHECK(problems_of("[\"\u00e9 \u20ac \U0001F600\"]") == "");
}

TEST_CASE("32 levels are read, 33 and 100,000 are refused alike") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK(problems_of(nested(32)) == "");
  CHECK(problems_of(nested(33)) == "1:33 [0]: found more than 32 levels of nesting, wanted fewer");
  CHECK(problems_of(nested(100'000)) == "1:33 [0]: found more than 32 levels of nesting, wanted fewer");
  CHECK(problems_of("{\"a\": {\"b\": " + std::string(100'000, '[')) ==
        "1:43 a: found more than 32 levels of nesting, wanted fewer");
}

}  // namespace
}  // namespace fleetrun::json_reader_test
