#include "job/effective_values.h"

#include <fmt/format.h>

namespace fleetrun::job {
namespace {

std::string origin_of(const std::string& path, const Draft& draft) {
  if (!draft.has(path)) return "default";
  const std::string place = draft.place_of(path);
  const auto alias = draft.is_of_strategy_file(path) ? std::nullopt : alias_used(draft, path);
  return alias ? fmt::format("{}, {}", *alias, place) : place;
}

// "default: from the data set" for a key without a value.
std::string origin_of_nothing(const Key& key) { return "default: " + key.rules.absent; }

void add_map(const JsonValue& map, const std::string& path, const Draft& draft,
             std::vector<KeyValue>& values) {
  for (const JsonMember& member : map.members) {
    const std::string below = child_path(path, member.key);
    const std::string origin = describe_place(draft.file, draft.where(below));
    values.push_back({below, to_json(member.value), origin, true});
  }
}

// Whether the chosen sibling gives the key a meaning.
bool is_used(const Key& parent, const Key& key, JobSpec& spec) {
  if (!key.rules.only_with) return true;
  const std::string choice = parent.find(key.rules.only_with->selector)->show(spec).text;
  for (const std::string& value : key.rules.only_with->values)
    if (value == choice) return true;
  return false;
}

// Whether a key that excludes this one is written.
bool is_replaced(const Key& key, const std::string& path, const Draft& draft) {
  return !key.rules.excludes.empty() && !draft.has(path) && draft.has(key.rules.excludes);
}

void add_members(const Key& parent, const std::string& path, Draft& draft, std::vector<KeyValue>& values) {
  for (const Key& key : parent.members) {
    const std::string below = child_path(path, key.name);
    if (key.rules.support == Support::later || !is_used(parent, key, draft.spec)) continue;
    if ((key.present && !key.present(draft.spec)) || is_replaced(key, below, draft)) {
      values.push_back({below, "null", origin_of_nothing(key), false});
    } else if (key.is_object()) {
      add_members(key, below, draft, values);
    } else if (const JsonValue value = key.show(draft.spec); value.is(JsonValue::Kind::object)) {
      add_map(value, below, draft, values);
    } else {
      const bool is_absent = value.is(JsonValue::Kind::null);
      values.push_back({below, to_json(value), is_absent ? origin_of_nothing(key) : origin_of(below, draft),
                        !is_absent && draft.has(below)});
    }
  }
}

}  // namespace

std::vector<KeyValue> effective_values(const Key& keys, Draft& draft) {
  std::vector<KeyValue> values;
  add_members(keys, "", draft, values);
  return values;
}

}  // namespace fleetrun::job
