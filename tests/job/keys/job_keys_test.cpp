#include "job/keys/job_keys.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "job/keys/make_key.h"

namespace fleetrun::job::job_keys_test {
namespace {

// A good value that is not the key's default.
JsonValue another_value(const Key& key) {
  const auto number = [&](int add) {
    return JsonValue(static_cast<int>(std::max(key.rules.range.least, 0.0)) + add);
  };
  switch (key.kind) {
    case ValueKind::boolean: {
      JobSpec defaults;
      return JsonValue(!key.show(defaults).boolean);
    }
    case ValueKind::integer:
      return number(key.name == "channels" ? 0 : 6);
    case ValueKind::number:
      return JsonValue(0.625);
    case ValueKind::text:
    case ValueKind::path:
      return JsonValue("another");
    case ValueKind::choice:
      return JsonValue(key.rules.choices.back().name);
    case ValueKind::integers:
      return JsonValue::list(std::vector<JsonValue>(key.item_count == 0 ? 2 : key.item_count, number(2)));
    case ValueKind::numbers:
      return JsonValue::list({JsonValue(0.5)});
    case ValueKind::texts:
      return JsonValue::list({JsonValue("another")});
    case ValueKind::number_map: {
      JsonValue map = JsonValue::object();
      map.add("A", 0.5);
      return map;
    }
    case ValueKind::class_weights:
      return JsonValue("balanced");
    case ValueKind::text_map: {
      JsonValue map = JsonValue::object();
      map.add("A", "another");
      return map;
    }
    case ValueKind::object:
      break;
  }
  return JsonValue();
}

TEST_CASE("every key with a field fills that field and no other") {
  const Key keys = job_keys();
  for_each_key(keys, [&](const std::string& path, const Key& key) {
    if (!key.store) return;
    CAPTURE(path);
    JobSpec spec;
    const JsonValue value = another_value(key);
    CHECK(to_json(key.show(spec)) != to_json(value));
    key.store(spec, value);
    CHECK(to_json(key.show(spec)) == to_json(value));
    for_each_key(keys, [&](const std::string& other_path, const Key& other) {
      JobSpec defaults;
      if (!other.show || other_path == path) return;
      CAPTURE(other_path);
      CHECK(to_json(other.show(spec)) == to_json(other.show(defaults)));
    });
  });
}

// The text without everything from each `open` to the last `close` after it.
std::string without(std::string text, const std::string& open, const std::string& close) {
  const std::size_t first = text.find(open);
  if (first == std::string::npos) return text;
  const std::size_t last = close.empty() ? text.size() : text.rfind(close) + close.size();
  return text.substr(0, first) + (last < text.size() ? text.substr(last) : "");
}

// "epochs" of " std::optional epochs = 1".
std::string field_name(std::string declaration) {
  declaration = without(declaration, "=", "");
  const std::size_t end = declaration.find_last_not_of(' ');
  if (end == std::string::npos) return "";
  const std::size_t before = declaration.find_last_of(' ', end);
  return declaration.substr(before + 1, end - before);
}

// The fields of each struct of job_spec.h, by reading it: the table must not forget one.
std::map<std::string, std::set<std::string>> fields_of_job_spec() {
  std::ifstream header(std::string(FLEETRUN_SOURCE_DIR) + "/lib/job/spec/job_spec.h");
  REQUIRE(header.good());
  std::map<std::string, std::set<std::string>> fields;
  std::string type;
  for (std::string line; std::getline(header, line);) {
    line = without(line, "//", "");
    if (line.starts_with("struct ")) {
      type = line.substr(7, line.find(' ', 7) - 7);
    } else if (line == "};") {
      type.clear();
    } else if (!type.empty()) {
      std::istringstream declarations(without(without(line, "<", ">"), "{", "}"));
      for (std::string one; std::getline(declarations, one, ',');) {
        const std::string name = field_name(without(one, ";", ""));
        if (!name.empty()) fields[type].insert(name);
      }
    }
  }
  return fields;
}

TEST_CASE("every field of JobSpec has a key") {
  const std::map<std::string, std::string> objects = {
      {"ModelSpec", "model"},
      {"DataSpec", "data"},
      {"DataSetSpec", "data.train"},
      {"OptimizerSpec", "optimizer"},
      {"GradientClipSpec", "optimizer.gradient_clip"},
      {"ScheduleSpec", "optimizer.learning_rate"},
      {"TrainSpec", "train"},
      {"EarlyStoppingSpec", "train.early_stopping"},
      {"CheckpointSpec", "checkpoint"},
      {"AmpSpec", "strategy.amp_configs"},
      {"RecomputeSpec", "strategy.recompute_configs"},
      {"GradientMergeSpec", "strategy.gradient_merge_configs"},
      {"LarsSpec", "strategy.lars_configs"},
      {"LambSpec", "strategy.lamb_configs"},
      {"ShardingSpec", "strategy.sharding_configs"},
      {"LocalSgdSpec", "strategy.localsgd_configs"},
      {"AdaptiveLocalSgdSpec", "strategy.adaptive_localsgd_configs"},
      {"DgcSpec", "strategy.dgc_configs"},
      {"PipelineSpec", "strategy.pipeline_configs"},
      {"HybridSpec", "strategy.hybrid_configs"},
      {"BuildStrategySpec", "strategy.build_strategy"},
      {"ExecutionStrategySpec", "strategy.execution_strategy"},
      {"StrategySpec", "strategy"},
      {"OutputSpec", "output"}};
  const std::map<std::string, std::string> other_names = {
      {"deviation", "std"}, {"auto_tune", "auto"}, {"dp_as_optimizer_sharding", "_dp_as_optimizer_sharding"}};
  const Key keys = job_keys();
  std::size_t count = 0;
  for (const auto& [type, fields] : fields_of_job_spec()) {
    if (type == "ClassWeights") continue;  // the fields of one value
    const bool is_whole = type == "JobSpec";
    REQUIRE_MESSAGE((is_whole || objects.count(type) == 1), type);
    const Key* object = is_whole ? &keys : find_key(keys, objects.at(type));
    REQUIRE_MESSAGE(object != nullptr, type);
    for (const std::string& field : fields) {
      const auto other = other_names.find(field);
      const std::string name = other == other_names.end() ? field : other->second;
      const bool is_no_key = is_whole && name == "file";
      CHECK_MESSAGE((is_no_key || object->find(name) != nullptr), type << "::" << field);
      ++count;
    }
  }
  CHECK(count > 80);  // the header was read at all
}

TEST_CASE("names, helps and rules of the table are whole") {
  const Key keys = job_keys();
  std::set<std::string> paths;
  const auto check = [&](const std::string& path, const Key& key) {
    CAPTURE(path);
    CHECK(paths.insert(path).second);
    CHECK_FALSE(key.help.empty());
    if (key.kind == ValueKind::choice) CHECK(key.rules.choices.size() >= 2);
    if (key.is_object()) return;
    JobSpec defaults;
    const bool has_no_value = key.show(defaults).is(JsonValue::Kind::null);
    if (has_no_value) CHECK_FALSE(key.rules.absent.empty());
    const std::string parent = path.substr(0, path.rfind('.'));
    if (key.rules.only_with) CHECK(find_key(keys, parent + "." + key.rules.only_with->selector) != nullptr);
    if (const std::string& other = key.rules.excludes; !other.empty()) {
      REQUIRE(find_key(keys, other) != nullptr);
      CHECK(find_key(keys, other)->rules.excludes == path);
    }
  };
  for_each_key(keys, check);
}

TEST_CASE("whole numbers may be written with a point or an exponent when they are whole") {
  CHECK(whole_number(JsonValue(-3)) == -3);
  CHECK(whole_number(JsonValue(64.0)) == 64);
  CHECK(whole_number(JsonValue(64.5)) == std::nullopt);
  CHECK(whole_number(JsonValue(1e300)) == std::nullopt);
  CHECK(whole_number(JsonValue("3")) == std::nullopt);
}

}  // namespace
}  // namespace fleetrun::job::job_keys_test
