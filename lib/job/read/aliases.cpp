#include "job/read/aliases.h"

#include <algorithm>

#include <fmt/format.h>

#include "job/read/json_tree.h"

namespace fleetrun::job {
namespace {

void note_alias(const Alias& alias, Draft& draft) {
  draft.written_as[alias.path] = alias.alias;
  draft.notes.push_back(fmt::format("{} is taken as {}", alias.alias, alias.path));
}

}  // namespace

std::vector<Alias> aliases_of(const Key& root) {
  std::vector<Alias> aliases;
  for_each_key(root, [&](const std::string& path, const Key& key) {
    for (const std::string& alias : key.rules.aliases) aliases.push_back({alias, path});
  });
  return aliases;
}

void move_aliases(JsonValue& root, const std::vector<Alias>& aliases, Draft& draft) {
  for (const Alias& alias : aliases) {
    const auto value = take_at(root, alias.alias);
    if (!value) continue;
    if (const JsonValue* other = find_at(root, alias.path)) {
      draft.problems.push_back({value->position, alias.alias,
                                fmt::format("found an alias of {}, wanted one of the two; the other is at {}",
                                            alias.path, describe_place(draft.file, other->position))});
      continue;
    }
    note_alias(alias, draft);
    put_at(root, alias.path, *value);
  }
}

std::string without_alias(const std::string& path, const std::vector<Alias>& aliases, Draft& draft) {
  for (const Alias& alias : aliases) {
    const bool is_below = path.starts_with(alias.alias + '.');
    if (path != alias.alias && !is_below) continue;
    note_alias(alias, draft);
    return alias.path + path.substr(alias.alias.size());
  }
  return path;
}

void expand_shorthand(JsonValue& value, const Key& key) {
  const bool is_number = value.is(JsonValue::Kind::integer) || value.is(JsonValue::Kind::number);
  if (key.rules.shorthand.empty() || !is_number) return;
  JsonValue object = JsonValue::object();
  object.position = value.position;
  object.add(key.rules.shorthand, std::move(value));
  value = std::move(object);
}

}  // namespace fleetrun::job
