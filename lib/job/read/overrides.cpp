#include "job/read/overrides.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "job/keys/check_value.h"
#include "job/read/json_tree.h"
#include "job/read/meant_key.h"

namespace fleetrun::job {
namespace {

bool is_text(ValueKind kind) {
  return kind == ValueKind::text || kind == ValueKind::path || kind == ValueKind::choice;
}

// Where a text is wanted, 2021 and true are texts.
bool wants_text(const Key& keys, const std::string& path) {
  if (const Key* key = find_key(keys, path)) return is_text(key->kind);
  const std::size_t dot = path.rfind('.');
  const Key* map = dot == std::string::npos ? nullptr : find_key(keys, path.substr(0, dot));
  return map != nullptr && map->kind == ValueKind::text_map;
}

void set_position(JsonValue& value, TextPosition position) {
  value.position = position;
  for (JsonValue& item : value.items) set_position(item, position);
  for (JsonMember& member : value.members) {
    member.position = position;
    set_position(member.value, position);
  }
}

std::string joined(const std::string& path, const std::string& below) {
  return below.empty() || below.front() == '[' ? path + below : path + '.' + below;
}

JsonValue read_value(const Override& change, const Key& keys, TextPosition position, Draft& draft) {
  JsonDocument document = read_json(change.value);
  const bool takes_away = document.root.is(JsonValue::Kind::null) && find_key(keys, change.path) != nullptr;
  const bool take_as_written =
      !document.complete ||
      (wants_text(keys, change.path) && !document.root.is(JsonValue::Kind::text) && !takes_away);
  JsonValue value = take_as_written ? JsonValue(change.value) : std::move(document.root);
  if (!take_as_written)
    for (const JsonProblem& problem : document.problems)
      draft.problems.push_back({position, joined(change.path, problem.path), problem.message});
  set_position(value, position);
  return value;
}

// A plain number becomes the object that it stands for where a member of that object is changed.
void expand_shorthands(JsonValue& object, const Key& key, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return;
  JsonMember* member = object.find(path.substr(0, dot));
  const Key* below = key.find(path.substr(0, dot));
  if (member == nullptr || below == nullptr) return;
  expand_shorthand(member->value, *below);
  expand_shorthands(member->value, *below, path.substr(dot + 1));
}

// The values that the tree has before a change and not after it. A key that is null counts as not written.
std::vector<TextPosition> lost_values(JsonValue old, JsonValue now, const Key* key) {
  if (key != nullptr) {
    expand_shorthand(old, *key);
    expand_shorthand(now, *key);
  }
  std::vector<TextPosition> lost;
  if (!old.is(JsonValue::Kind::object) || !now.is(JsonValue::Kind::object)) return lost;
  for (const JsonMember& member : old.members) {
    if (member.value.is(JsonValue::Kind::null)) continue;
    const JsonMember* kept = now.find(member.key);
    const auto below = kept == nullptr ? std::vector{member.value.position}
                                       : lost_values(member.value, kept->value,
                                                     key == nullptr ? nullptr : key->find(member.key));
    lost.insert(lost.end(), below.begin(), below.end());
  }
  return lost;
}

// "train.epochs=VALUE changes only epochs". The value may be a secret, or long; a number is neither.
std::string describe_smaller_change(const std::string& path, const JsonValue& value, const Key& key) {
  const bool is_object = value.is(JsonValue::Kind::object);
  const std::string member = !is_object              ? key.rules.shorthand
                             : value.members.empty() ? "KEY"
                                                     : value.members.front().key;
  return fmt::format("{}={} changes only {}", child_path(path, member),
                     is_object ? "VALUE" : describe_found(value), member);
}

// An object, or a plain number in place of one, takes away all that it does not name.
void note_replaced_object(const JsonValue& root, const std::string& path, const JsonValue& value,
                          const Key& keys, Draft& draft) {
  const Key* key = find_key(keys, path);
  const JsonValue* old = find_at(root, path);
  if (key == nullptr || old == nullptr) return;
  const std::vector<TextPosition> lost = lost_values(*old, value, key);
  if (lost.empty()) return;
  const bool of_file = old->position.line > 0 &&
                       std::any_of(lost.begin(), lost.end(), [](TextPosition one) { return one.line > 0; });
  draft.notes.push_back(
      fmt::format("{0} of the command line replaces all of {0} of {1}; {2}", path,
                  of_file ? describe_place(draft.file, old->position) : "the words before it",
                  describe_smaller_change(path, value, *key)));
}

// "strategy=FILE" is "strategy_file=FILE", and "strategy=null" takes away a file that was named like that.
void name_file(JsonValue& root, Override& change, const JsonValue& value, const Key& keys, Draft& draft) {
  const Key* key = find_key(keys, change.path);
  if (change.path == "strategy_file") draft.strategy_names_file = false;
  if (key == nullptr || key->rules.named_by.empty()) return;
  if (value.is(JsonValue::Kind::text)) {
    change.path = key->rules.named_by;
    draft.strategy_names_file = true;
  } else if (value.is(JsonValue::Kind::null) && draft.strategy_names_file) {
    take_at(root, key->rules.named_by);
    draft.strategy_names_file = false;
  }
}

// "--batch_size 8" and "epochs=3" are written for other programs; what they are here.
[[noreturn]] void refuse_word(const std::vector<std::string>& words, std::size_t at, const Key& keys) {
  constexpr std::size_t kShown = 60;  // characters of a word
  const std::string& word = words[at];
  const std::size_t equals = word.find('=');
  const std::size_t begin = std::min(word.find_first_not_of('-'), word.size());
  const bool has_value_behind = equals == std::string::npos && at + 1 < words.size() &&
                                !words[at + 1].starts_with('-') &&
                                words[at + 1].find('=') == std::string::npos;
  std::string name = word.substr(begin, equals == std::string::npos ? equals : equals - begin);
  std::replace(name.begin(), name.end(), '-', '_');
  const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                            : has_value_behind          ? words[at + 1]
                                                        : "VALUE";
  const Key* const key = find_key(keys, name);
  const std::optional<std::string> meant = key != nullptr && !key->is_object() ? name : meant_key(name, keys);
  const std::string found = has_value_behind && meant ? word + ' ' + words[at + 1] : word;
  throw Error(ErrorKind::usage,
              fmt::format("found {} after the job file, wanted {}", shortened_quote(found, kShown),
                          meant ? *meant + '=' + value : "key.path=value"),
              word.starts_with('-') ? "flags of fleetrun come before the job file" : "");
}

}  // namespace

std::vector<Override> parse_overrides(const std::vector<std::string>& words, const Key& keys) {
  std::vector<Override> overrides;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string path = word.substr(0, equals);
    const bool has_empty_part =
        path.empty() || path.front() == '.' || path.back() == '.' || path.find("..") != std::string::npos;
    if (equals == std::string::npos || has_empty_part || path.front() == '-') refuse_word(words, i, keys);
    overrides.push_back({path, word.substr(equals + 1)});
  }
  return overrides;
}

void apply_overrides(JsonValue& root, const std::vector<Override>& overrides, const Key& keys, Draft& draft) {
  const std::vector<Alias> aliases = aliases_of(keys);
  int count = 0;
  for (const Override& typed : overrides) {
    const TextPosition position{0, ++count};
    Override change{without_alias(typed.path, aliases, draft), typed.value};
    if (change.path == typed.path) draft.written_as[change.path] = "";
    expand_shorthands(root, keys, change.path);
    const JsonValue value = read_value(change, keys, position, draft);
    name_file(root, change, value, keys, draft);
    note_replaced_object(root, change.path, value, keys, draft);
    const auto blocked = put_at(root, change.path, value);
    if (!blocked) continue;
    const JsonValue& in_the_way = *find_at(root, *blocked);
    draft.problems.push_back(
        {position, change.path,
         fmt::format("found {} as {} at {}, wanted an object there", describe_found(in_the_way), *blocked,
                     describe_place(draft.file, in_the_way.position))});
  }
}

}  // namespace fleetrun::job
