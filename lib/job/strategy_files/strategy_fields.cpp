#include "job/strategy_files/strategy_fields.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "job/read/json_tree.h"

namespace fleetrun::job {
namespace {

using Kind = JsonValue::Kind;

// A field that has another name or other values than its key.
struct Translation {
  std::string field, key;
  std::vector<std::pair<JsonValue, JsonValue>> values;  // of the field, of the key; none: the same ones
  PaddleVersion only_in = PaddleVersion::any;
};

const std::vector<Translation>& translations() {
  static const std::vector<Translation> all = {
      {"build_strategy.reduce_strategy", "build_strategy.reduce_strategy", {{0, "AllReduce"}, {1, "Reduce"}}},
      {"gradient_scale_configs.scale_strategy",
       "build_strategy.gradient_scale_strategy",
       {{"avg", "CoeffNumDevice"}, {"sum", "One"}}},
      {"sharding_configs.sharding_group_size",
       "sharding_configs.sharding_degree",
       {},
       PaddleVersion::paddle_2},
      {"sharding_configs.fuse_broadcast_MB",
       "sharding_configs.segment_broadcast_MB",
       {},
       PaddleVersion::paddle_2},
      {"pipeline_configs.micro_batch", "pipeline_configs.accumulate_steps", {}, PaddleVersion::paddle_2},
  };
  return all;
}

// Fields that have no effect on collective training in PaddlePaddle, and why.
const std::map<std::string, std::string>& fields_without_effect() {
  const std::string servers = "it is for parameter servers";
  static const std::map<std::string, std::string> all = {
      {"a_sync_configs", servers},
      {"trainer_desc_configs", servers},
      {"downpour_table_param", servers},
      {"fs_client_param", servers},
      {"elastic", "PaddlePaddle does not use it; --nnodes=MIN:MAX makes a run elastic"},
      {"without_graph_optimization", "fleetrun follows build_strategy in either case"},
  };
  return all;
}

// NAME_configs has an effect only with NAME.
const std::set<std::string>& switches() {
  static const std::set<std::string> all = {"amp",      "recompute", "localsgd",          "dgc",
                                            "lars",     "lamb",      "gradient_merge",    "pipeline",
                                            "sharding", "qat",       "adaptive_localsgd", "tensor_parallel"};
  return all;
}

std::string first_part(const std::string& path) { return path.substr(0, path.find_first_of(".[")); }

bool is_leaf(const JsonValue& value) { return !value.is(Kind::object) || value.members.empty(); }

class Mapping {
 public:
  Mapping(const StrategyDocument& document, const Key& keys, const JsonValue* written)
      : document_(document),
        keys_(keys),
        written_(written),
        at_default_(document.at_default.begin(), document.at_default.end()) {}

  std::vector<StrategyField> map() {
    add_members(document_.root, "");
    return std::move(fields_);
  }

 private:
  void add_members(const JsonValue& object, const std::string& path) {
    for (const JsonMember& member : object.members) {
      const std::string below = child_path(path, member.key);
      if (is_leaf(member.value))
        fields_.push_back(map_field(below, member.value));
      else
        add_members(member.value, below);
    }
  }

  StrategyField map_field(const std::string& path, const JsonValue& value) const {
    StrategyField field = {
        .path = path, .value = value, .position = value.position, .key = path, .setting = value, .why = {}};
    const bool is_known = translate(field) && is_supported("strategy." + field.key);
    if (is_known) {
      field.use = is_written(field.key)              ? FieldUse::overridden
                  : is_default_without_effect(field) ? FieldUse::at_default
                                                     : FieldUse::key;
      return field;
    }
    field.key.clear();
    if (is_turned_off(path)) {
      field.use = FieldUse::turned_off;
      return field;
    }
    field.why = why_no_effect(path);
    if (!field.why.empty()) field.use = FieldUse::no_effect;
    if (is_empty(value) || at_default_.count(path) != 0) field.use = FieldUse::at_default;
    return field;
  }

  // False for a value that no key has.
  static bool translate(StrategyField& field) {
    for (const Translation& known : translations()) {
      if (known.field != field.path) continue;
      if (known.values.empty()) {
        field.key = known.key;
        return true;
      }
      for (const auto& [value, setting] : known.values) {
        if (to_json(value) != to_json(field.value)) continue;
        field.key = known.key;
        field.setting = setting;
        field.setting.position = field.position;
        return true;
      }
      return false;
    }
    return true;
  }

  bool is_supported(const std::string& path) const {
    const Key* key = find_key(keys_, path);
    return key != nullptr && key->rules.support != Support::later && !key->is_object();
  }

  // PaddlePaddle writes such fields without being asked; a note about each would say nothing.
  bool is_default_without_effect(const StrategyField& field) const {
    const Key& key = *find_key(keys_, "strategy." + field.key);
    JobSpec defaults;
    return !key.rules.note.empty() && to_json(key.show(defaults)) == to_json(field.setting);
  }

  bool is_written(const std::string& key) const {
    const JsonValue* value = written_ == nullptr ? nullptr : find_at(*written_, key);
    return value != nullptr && !value->is(Kind::null);
  }

  bool is_turned_off(const std::string& path) const {
    const JsonValue* value = written_ == nullptr ? nullptr : find_at(*written_, path);
    return value != nullptr && value->is(Kind::boolean) && !value->boolean;
  }

  static bool is_empty(const JsonValue& value) {
    return (value.is(Kind::object) && value.members.empty()) || (value.is(Kind::list) && value.items.empty());
  }

  bool is_on(const std::string& name) const {
    const JsonMember* of_job = written_ == nullptr ? nullptr : written_->find(name);
    const JsonMember* of_file = document_.root.find(name);
    const JsonMember* valid = of_job != nullptr && !of_job->value.is(Kind::null) ? of_job : of_file;
    return valid != nullptr && valid->value.is(Kind::boolean) && valid->value.boolean;
  }

  std::string why_no_effect(const std::string& path) const {
    constexpr std::string_view kEnding = "_configs";
    const std::string first = first_part(path);
    const auto known = fields_without_effect().find(first);
    if (known != fields_without_effect().end()) return known->second;
    if (!first.ends_with(kEnding)) return "";
    const std::string name = first.substr(0, first.size() - kEnding.size());
    return switches().count(name) == 0 || is_on(name) ? "" : fmt::format("{} is false", name);
  }

  const StrategyDocument& document_;
  const Key& keys_;
  const JsonValue* written_;
  std::set<std::string> at_default_;
  std::vector<StrategyField> fields_;
};

}  // namespace

std::vector<StrategyField> map_fields(const StrategyDocument& document, const Key& keys,
                                      const JsonValue* written) {
  return Mapping(document, keys, written).map();
}

JsonValue settings_of(const std::vector<StrategyField>& fields) {
  JsonValue settings = JsonValue::object();
  for (const StrategyField& field : fields)
    if (field.use == FieldUse::key) put_at(settings, field.key, field.setting);
  return settings;
}

FieldOfKey field_of_key(const std::string& key, const JsonValue& value, PaddleVersion version) {
  for (const Translation& known : translations()) {
    if (known.key != key || (known.only_in != PaddleVersion::any && known.only_in != version)) continue;
    if (known.values.empty()) return {known.field, value};
    for (const auto& [of_field, setting] : known.values)
      if (to_json(setting) == to_json(value)) return {known.field, of_field};
  }
  return {key, value};
}

}  // namespace fleetrun::job
