#include "base/json/json_value.h"

#include <doctest/doctest.h>

#include "base/json/json_reader.h"

namespace fleetrun::json_value_test {
namespace {

TEST_CASE("a value is written on one line") {
  JsonValue value = JsonValue::object();
  value.add("a", JsonValue::list({JsonValue(1), JsonValue(0.1)}));
  value.add("b", JsonValue());
  value.add("c", true);
  CHECK(to_json(value) == R"({"a": [1, 0.1], "b": null, "c": true})");
}

TEST_CASE("lines are indented, lists of plain values stay on one") {
  const JsonValue value = read_json(R"({"a": {"b": [1, 2], "c": []}, "d": [{}, {"e": "x"}]})").root;
  CHECK(
      to_json_lines(value) ==
      "{\n  \"a\": {\n    \"b\": [1, 2],\n    \"c\": []\n  },\n  \"d\": [\n    {},\n    {\n      \"e\": \"x\"\n    }\n  ]\n}\n");
}

TEST_CASE("every item of a tall text has a line of its own, and numbers that are not integers a point") {
  const JsonValue value = JsonValue::object({{"a", std::vector<int>{1, 2}},
                                             {"b", JsonValue::list({})},
                                             {"c", JsonValue::object()},
                                             {"d", 2.0},
                                             {"e", 1e20},
                                             {"f", 0.5}});
  CHECK(
      to_json_tall(value) ==
      "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": [],\n  \"c\": {},\n  \"d\": 2.0,\n  \"e\": 1e+20,\n  \"f\": 0.5\n}\n");
}

TEST_CASE("plain values become JSON values of their kind") {
  const JsonValue value =
      JsonValue::list({true, 7, 0.25, "text", std::string("more"), std::optional<int>(), std::optional(8),
                       std::vector<std::string>{"a"}, std::uint64_t{1} << 63});
  CHECK(to_json(value) == R"([true, 7, 0.25, "text", "more", null, 8, ["a"], 9.223372036854776e+18])");
  const JsonValue object = JsonValue::object({{"a", 1}});
  REQUIRE(object.find("a", JsonValue::Kind::integer) != nullptr);
  CHECK(object.find("a", JsonValue::Kind::integer)->integer == 1);
  CHECK(object.find("a", JsonValue::Kind::text) == nullptr);
  CHECK(object.find("b", JsonValue::Kind::integer) == nullptr);
}

TEST_CASE("what is written can be read back") {
  const std::string text =
      R"({"a": [1, -2.5, 1e-08, "\"\\\n\té\u0001\u007f\u0085"], "b": {"c": [{"d": false}]}})";
  const JsonDocument document = read_json(text);
  REQUIRE(document.complete);
  CHECK(to_json(document.root) == text);
  CHECK(to_json(read_json(to_json_lines(document.root)).root) == text);
}

TEST_CASE("what a terminal does not show as it stands is escaped, and can be read back") {
  const std::string text = "a\u202Eb\u2066c\u2028d \u00E9\u6570\U0001F680\u0085";
  CHECK(json_quoted(text) == "\"a\\u202eb\\u2066c\\u2028d \u00E9\u6570\U0001F680\\u0085\"");
  CHECK(read_json(json_quoted(text)).root.text == text);
}

TEST_CASE("paths are plain where keys are, and safe to print where they are not") {
  CHECK(child_path("", "train") == "train");
  CHECK(child_path("train", "log_every") == "train.log_every");
  CHECK(item_path(child_path("model", "hidden"), 2) == "model.hidden[2]");
  CHECK(child_path("env", "a.b") == "env.\"a.b\"");
  CHECK(child_path("", "\x1b[2J") == "\"\\u001b[2J\"");
  CHECK(child_path("", std::string(100'000, 'x')) == '"' + std::string(60, 'x') + "\"...");
}

}  // namespace
}  // namespace fleetrun::json_value_test
