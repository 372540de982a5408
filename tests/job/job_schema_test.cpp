#include "job/job_schema.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/json/json_reader.h"
#include "job/keys/job_keys.h"

namespace fleetrun::job::job_schema_test {
namespace {

const JsonValue& at(const JsonValue& value, const std::string& key) {
  const JsonMember* member = value.find(key);
  REQUIRE_MESSAGE(member != nullptr, key);
  return member->value;
}

// The schema of a key: "train.epochs" is below properties, twice.
const JsonValue& property(const JsonValue& schema, const std::string& path) {
  const std::size_t dot = path.find('.');
  const JsonValue& first = at(at(schema, "properties"), path.substr(0, dot));
  return dot == std::string::npos ? first : property(first, path.substr(dot + 1));
}

// Every word that is used as a keyword must be one of draft 7, or an editor would silently ignore it.
void check_keywords(const JsonValue& schema) {
  static const std::set<std::string> kKeywords = {"$schema",
                                                  "title",
                                                  "description",
                                                  "type",
                                                  "enum",
                                                  "const",
                                                  "default",
                                                  "not",
                                                  "if",
                                                  "then",
                                                  "else",
                                                  "allOf",
                                                  "anyOf",
                                                  "required",
                                                  "properties",
                                                  "additionalProperties",
                                                  "items",
                                                  "minItems",
                                                  "maxItems",
                                                  "minLength",
                                                  "minProperties",
                                                  "minimum",
                                                  "maximum",
                                                  "exclusiveMinimum",
                                                  "exclusiveMaximum"};
  for (const JsonMember& member : schema.members) {
    CHECK_MESSAGE(kKeywords.count(member.key) == 1, member.key);
    if (member.key == "properties")
      for (const JsonMember& below : member.value.members) check_keywords(below.value);
    if (member.key == "not" || member.key == "if" || member.key == "then" || member.key == "else" ||
        member.key == "items")
      check_keywords(member.value);
    if (member.key == "allOf" || member.key == "anyOf")
      for (const JsonValue& item : member.value.items) check_keywords(item);
  }
}

TEST_CASE("the schema is JSON and uses the words of draft 7") {
  const JsonValue schema = job_schema();
  const JsonDocument document = read_json(to_json_lines(schema));
  CHECK(document.complete);
  CHECK(document.problems.empty());
  CHECK(at(schema, "$schema").text == "http://json-schema.org/draft-07/schema#");
  check_keywords(schema);
}

TEST_CASE("every key that this build has is in the schema, those of later builds are refused there") {
  const JsonValue schema = job_schema();
  for_each_key(job_keys(), [&](const std::string& path, const Key& key) {
    CAPTURE(path);
    const bool is_in_schedule = path.starts_with("optimizer.learning_rate.");
    if (is_in_schedule) return;
    const bool is_refused = property(schema, path).find("not") != nullptr;
    CHECK(is_refused == (key.rules.support == Support::later));
  });
}

TEST_CASE("types, ranges, choices and defaults are those of the table") {
  const JsonValue schema = job_schema();
  CHECK(
      to_json(property(schema, "data.batch_size")) ==
      R"({"description": "samples per rank in each step", "type": "integer", "minimum": 1, "maximum": 2147483647})");
  CHECK(
      to_json(property(schema, "model.dropout")) ==
      R"json({"description": "probability of dropping a value before the last layer (vgg16: before each of the last two)", "type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0})json");
  CHECK(
      to_json(at(property(schema, "model.name"), "enum")) ==
      R"(["mlp", "lenet", "resnet20", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "vgg16", "mobilenet_v1"])");
  CHECK(to_json(at(property(schema, "data.train.shape"), "minItems")) == "3");
  CHECK(to_json(at(property(schema, "data.train.shape"), "maxItems")) == "3");
  CHECK(to_json(at(property(schema, "strategy.sharding_configs.mp_degree"), "const")) == "1");
  CHECK(to_json(at(property(schema, "env"), "additionalProperties")) == R"({"type": "string"})");
}

// A number of the schema; the job's own parser reads both kinds.
double number(const JsonValue& value) {
  return value.is(JsonValue::Kind::integer) ? static_cast<double>(value.integer) : value.number;
}

TEST_CASE("row 3: the limits in the schema are those of the table, and every default is within them") {
  const JsonDocument document = read_json(to_json_lines(job_schema()));
  int limits = 0;
  for_each_key(job_keys(), [&](const std::string& path, const Key& key) {
    const bool is_number = key.kind == ValueKind::number || key.kind == ValueKind::integer;
    if (!is_number || key.rules.support == Support::later || path.starts_with("optimizer.learning_rate."))
      return;
    CAPTURE(path);
    const JsonValue& schema = property(document.root, path);
    const JsonMember* preset = schema.find("default");
    const auto check = [&](const char* name, double limit, bool is_least) {
      const JsonMember* found = schema.find(name);
      if (found == nullptr) return;
      ++limits;
      CHECK(number(found->value) == doctest::Approx(limit));
      if (preset != nullptr)
        CHECK((is_least ? number(preset->value) >= limit : number(preset->value) <= limit));
    };
    check("minimum", key.rules.range.least, true);
    check("exclusiveMinimum", key.rules.range.least, true);
    check("maximum", key.rules.range.most, false);
    check("exclusiveMaximum", key.rules.range.most, false);
  });
  CHECK(limits > 40);
  CHECK(number(at(property(document.root, "strategy.amp_configs.init_loss_scaling"), "maximum")) > 3e38);
}

TEST_CASE("required keys, conditions and exclusions are in it") {
  const JsonValue schema = job_schema();
  CHECK(to_json(at(schema, "required")) == R"(["model", "data"])");
  CHECK(
      to_json(at(schema, "allOf")) ==
      R"([{"not": {"allOf": [{"properties": {"data": {"required": ["batch_size"]}}, "required": ["data"]}, {"properties": {"train": {"required": ["global_batch"]}}, "required": ["train"]}]}}])");
  CHECK(to_json(at(property(schema, "train"), "allOf")) ==
        R"([{"not": {"required": ["epochs", "max_steps"]}}])");
  CHECK(
      to_json(at(property(schema, "model"), "allOf")) ==
      R"([{"if": {"properties": {"name": {"enum": ["mlp"]}}, "required": ["name"]}, "else": {"not": {"required": ["hidden"]}}}])");
  CHECK(
      to_json(at(property(schema, "data.train"), "allOf"))
          .find(
              R"({"if": {"properties": {"format": {"enum": ["idx"]}}, "required": ["format"]}, "then": {"required": ["labels"]}, "else": {"not": {"required": ["labels"]}}})") !=
      std::string::npos);
  CHECK(at(property(schema, "optimizer.learning_rate"), "anyOf").items.size() == 2);
}

TEST_CASE("aliases are properties, too") {
  CHECK(at(property(job_schema(), "strategy.thread_num"), "description").text ==
        "another name of strategy.execution_strategy.num_threads");
}

TEST_CASE("the table for people has a line for each key") {
  const std::string table = job_key_table();
  CHECK(table.starts_with("| key | value | default | meaning |\n|---|---|---|---|\n"));
  CHECK(
      table.find(
          "| `model.hidden` | a list of whole numbers from 1 to 65536 | `[512, 256]` | widths of the hidden layers (with name mlp) |\n") !=
      std::string::npos);
  CHECK(
      table.find(
          "| `strategy.auto` | true or false | `false` | times steps with several settings of the strategy for a minute at the first start, and trains with the fastest |\n") !=
      std::string::npos);
}

TEST_CASE("docs/job-keys.md is what `fleetrun config --keys` prints, below its first lines") {
  std::ifstream file(std::string(FLEETRUN_SOURCE_DIR) + "/docs/job-keys.md");
  std::ostringstream text;
  text << file.rdbuf();
  CHECK(text.str().ends_with("\n\n" + job_key_table()));
}

}  // namespace
}  // namespace fleetrun::job::job_schema_test
