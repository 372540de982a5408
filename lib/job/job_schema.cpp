#include "job/job_schema.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "job/keys/check_value.h"
#include "job/keys/job_keys.h"
#include "job/keys/make_key.h"
#include "job/read/aliases.h"
#include "job/read/json_tree.h"

namespace fleetrun::job {
namespace {

JsonValue text(std::string value) { return JsonValue(std::move(value)); }

JsonValue texts(const std::vector<std::string>& values) {
  std::vector<JsonValue> items;
  items.reserve(values.size());
  for (const std::string& value : values) items.push_back(text(value));
  return JsonValue::list(std::move(items));
}

// {"key": value}
JsonValue single(std::string key, JsonValue value) {
  JsonValue object = JsonValue::object();
  object.add(std::move(key), std::move(value));
  return object;
}

JsonValue limit(double value) {
  const std::optional<std::int64_t> whole = whole_number(JsonValue(value));
  return whole ? JsonValue(*whole) : JsonValue(value);
}

void add_range(JsonValue& schema, const Range& range) {
  if (std::isfinite(range.least))
    schema.add(range.above_least ? "exclusiveMinimum" : "minimum", limit(range.least));
  if (std::isfinite(range.most))
    schema.add(range.below_most ? "exclusiveMaximum" : "maximum", limit(range.most));
}

void add_list(JsonValue& schema, const Key& key, const char* item_type) {
  JsonValue items = single("type", text(item_type));
  add_range(items, key.rules.range);
  schema.add("items", std::move(items));
  const std::size_t least = std::max(key.item_count, key.rules.least_items);
  if (least > 0) schema.add("minItems", static_cast<std::int64_t>(least));
  if (key.item_count > 0) schema.add("maxItems", static_cast<std::int64_t>(key.item_count));
}

void add_number_map(JsonValue& schema, const Key& key) {
  schema.add("type", text("object"));
  JsonValue item = single("type", text("number"));
  add_range(item, key.rules.range);
  schema.add("additionalProperties", std::move(item));
}

void add_type(JsonValue& schema, const Key& key) {
  switch (key.kind) {
    case ValueKind::boolean:
      return schema.add("type", text("boolean"));
    case ValueKind::integer:
    case ValueKind::number:
      schema.add("type", text(key.kind == ValueKind::integer ? "integer" : "number"));
      return add_range(schema, key.rules.range);
    case ValueKind::text:
      return schema.add("type", text("string"));
    case ValueKind::path:
      schema.add("type", text("string"));
      return schema.add("minLength", 1);
    case ValueKind::choice:
      return schema.add("enum", texts(supported_choices(key)));
    case ValueKind::integers:
    case ValueKind::numbers:
    case ValueKind::texts:
      schema.add("type", text("array"));
      return add_list(schema, key,
                      key.kind == ValueKind::integers  ? "integer"
                      : key.kind == ValueKind::numbers ? "number"
                                                       : "string");
    case ValueKind::text_map:
      schema.add("type", text("object"));
      return schema.add("additionalProperties", single("type", text("string")));
    case ValueKind::number_map:
      return add_number_map(schema, key);
    case ValueKind::class_weights: {
      JsonValue list = single("type", text("array")), map = JsonValue::object();
      add_list(list, key, "number");
      list.add("minItems", 1);
      add_number_map(map, key);
      map.add("minProperties", 1);
      JsonValue balanced = single("enum", texts({kBalanced}));
      return schema.add("anyOf", JsonValue::list({std::move(balanced), std::move(list), std::move(map)}));
    }
    case ValueKind::object:
      break;
  }
}

// Null where what holds by default is not a fixed value.
JsonValue default_of(const Key& key) {
  JobSpec defaults;
  return key.is_object() || key.rules.required || !key.rules.absent.empty() ? JsonValue()
                                                                            : key.show(defaults);
}

// The values of the selector for which it is valid to write the key.
JsonValue selector_is(const Condition& condition) {
  return single("properties", single(condition.selector, single("enum", texts(condition.values))));
}

// When the selector is not written, its default decides.
JsonValue applies(const Key& parent, const Condition& condition) {
  const Key& selector = *parent.find(condition.selector);
  JsonValue test = selector_is(condition);
  const JsonValue preset = default_of(selector);
  const auto& values = condition.values;
  if (std::find(values.begin(), values.end(), preset.text) == values.end())
    test.add("required", texts({selector.name}));
  return test;
}

// "train.epochs" -> "train", "epochs".
std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

std::vector<JsonValue> rules_of(const Key& object) {
  std::vector<JsonValue> rules;
  for (const Key& key : object.members) {
    if (key.rules.support == Support::later) continue;
    const JsonValue written = single("required", texts({key.name}));
    if (key.rules.only_with) {
      JsonValue rule = single("if", applies(object, *key.rules.only_with));
      if (key.rules.required) rule.add("then", written);
      rule.add("else", single("not", written));
      rules.push_back(std::move(rule));
    }
    const auto [folder, other] = split_path(key.rules.excludes);
    if (folder == object.name && !other.empty() && key.name < other)
      rules.push_back(single("not", single("required", texts({key.name, other}))));
  }
  return rules;
}

JsonValue schema_of(const Key& key);

JsonValue object_schema(const Key& key) {
  JsonValue schema =
      single("type", key.rules.named_by.empty() ? text("object") : texts({"object", "string"}));
  JsonValue properties = JsonValue::object();
  std::vector<std::string> required;
  for (const Key& member : key.members) {
    properties.add(member.name, schema_of(member));
    if (member.rules.required && !member.rules.only_with) required.push_back(member.name);
  }
  schema.add("properties", std::move(properties));
  schema.add("additionalProperties", false);
  if (!required.empty()) schema.add("required", texts(required));
  std::vector<JsonValue> rules = rules_of(key);
  if (!rules.empty()) schema.add("allOf", JsonValue::list(std::move(rules)));
  return schema;
}

// What the value is, without words about it.
JsonValue value_schema(const Key& key) {
  if (!key.is_object()) {
    JsonValue schema = JsonValue::object();
    add_type(schema, key);
    return schema;
  }
  if (key.rules.shorthand.empty()) return object_schema(key);
  return single("anyOf", JsonValue::list({value_schema(*key.find(key.rules.shorthand)), object_schema(key)}));
}

JsonValue schema_of(const Key& key) {
  JsonValue schema = single("description", text(key.help));
  const bool is_later = key.rules.support == Support::later;
  if (is_later) {
    schema.members.back().value.text += " (not supported by this build)";
    schema.add("not", JsonValue::object());
    return schema;
  }
  for (JsonMember& member : value_schema(key).members) schema.members.push_back(std::move(member));
  const JsonValue preset = default_of(key);
  if (key.rules.support == Support::default_only) schema.add("const", preset);
  if (!preset.is(JsonValue::Kind::null)) schema.add("default", preset);
  return schema;
}

// Objects with this key, which is in a section of the job.
JsonValue with_key(const std::string& path) {
  const auto [section, key] = split_path(path);
  JsonValue schema = single("properties", single(section, single("required", texts({key}))));
  schema.add("required", texts({section}));
  return schema;
}

// Keys of different sections that exclude each other.
std::vector<JsonValue> rules_between_sections(const Key& keys) {
  std::vector<JsonValue> rules;
  for_each_key(keys, [&](const std::string& path, const Key& key) {
    const std::string& other = key.rules.excludes;
    if (other.empty() || path > other || split_path(path).first == split_path(other).first) return;
    rules.push_back(single("not", single("allOf", JsonValue::list({with_key(path), with_key(other)}))));
  });
  return rules;
}

// Where the schema of a key stands: "strategy.amp" is at properties.strategy.properties.amp.
std::string schema_path(std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return fmt::format("properties.{}", path);
  return fmt::format("properties.{}.{}", path.substr(0, dot), schema_path(path.substr(dot + 1)));
}

std::string wanted_words(const Key& key) {
  return key.rules.support == Support::later ? "only false" : describe_wanted(key);
}

std::string default_words(const Key& key, const std::string& optional_section) {
  if (key.rules.required)
    return optional_section.empty() ? "required" : "required if the job has " + optional_section;
  if (key.rules.support == Support::later) return "`false`";
  if (!key.rules.absent.empty()) return key.rules.absent;
  return fmt::format("`{}`", to_json(default_of(key)));
}

// For whom the key is, whether it is built, and whether it does anything.
std::string remarks(const Key& key) {
  std::string words;
  if (!key.rules.note.empty()) words = "; it " + key.rules.note;
  if (key.rules.only_with)
    words += fmt::format(" (with {} {})", key.rules.only_with->selector,
                         fmt::join(key.rules.only_with->values, ", "));
  return key.rules.support == Support::later ? words + " (not supported by this build)" : words;
}

// A bar would end the column.
std::string cell(std::string words) {
  for (std::size_t at = words.find('|'); at != std::string::npos; at = words.find('|', at + 2))
    words.insert(at, "\\");
  return words;
}

}  // namespace

JsonValue job_schema() {
  const Key keys = job_keys();
  JsonValue schema = single("$schema", text("http://json-schema.org/draft-07/schema#"));
  schema.add("title", text("fleetrun job"));
  for (JsonMember& member : schema_of(keys).members) schema.members.push_back(std::move(member));
  schema.add("allOf", JsonValue::list(rules_between_sections(keys)));
  for (const Alias& alias : aliases_of(keys)) {
    JsonValue other_name = schema_of(*find_key(keys, alias.path));
    other_name.find("description")->value = text("another name of " + alias.path);
    put_at(schema, schema_path(alias.alias), std::move(other_name));
  }
  return schema;
}

std::string job_key_table() {
  const Key keys = job_keys();
  std::string table = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for_each_key(keys, [&](const std::string& path, const Key& key) {
    if (key.is_object() && key.rules.support != Support::later) return;
    const auto [section, name] = split_path(path);
    const Key* const around = find_key(keys, section);
    std::string help = key.help;
    if (around != nullptr && around->rules.shorthand == name)
      help += fmt::format("; {0}=NUMBER is short for {1}=NUMBER", section, path);
    const bool is_optional = around != nullptr && !around->rules.absent.empty();
    table += fmt::format("| `{}` | {} | {} | {}{} |\n", path, cell(wanted_words(key)),
                         cell(default_words(key, is_optional ? section : "")), cell(help), remarks(key));
  });
  return table;
}

}  // namespace fleetrun::job
