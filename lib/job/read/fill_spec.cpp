#include "job/read/fill_spec.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "job/keys/check_value.h"
#include "job/keys/job_keys.h"
#include "job/read/aliases.h"
#include "job/read/json_tree.h"
#include "job/read/meant_key.h"

namespace fleetrun::job {
namespace {

void fill_object(const JsonValue& object, const Key& key, const std::string& path, Draft& draft);

void report(const JsonValue& value, const std::string& path, std::string message, Draft& draft) {
  draft.problems.push_back({value.position, path, std::move(message)});
}

// What other trainers have and fleetrun has not, by words in the names of their keys.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNotThere = {
    {{"label_smooth", "label smoothing"}, {"mixup", "mixup"}, {"cutmix", "CutMix"}}};

std::string hint_about(const std::string& unknown, const Key& parent) {
  for (const auto& [word, feature] : kNotThere)
    if (unknown.find(word) != std::string::npos)
      return fmt::format(", wanted none: fleetrun has no {}", feature);
  std::vector<std::string> names;
  for (const Key& key : parent.members) names.push_back(key.name);
  std::string hint = did_you_mean(unknown, names);
  if (const auto elsewhere = hint.empty() ? meant_key(unknown, job_keys()) : std::nullopt)
    hint = fmt::format("; did you mean \"{}\"?", *elsewhere);
  return hint.empty() ? fmt::format(", wanted one of {}", fmt::join(names, ", ")) : hint;
}

void report_unknown(const JsonMember& member, const Key& parent, const std::string& path, Draft& draft) {
  draft.problems.push_back({member.position, child_path(path, member.key),
                            "found an unknown key" + hint_about(member.key, parent)});
}

// Whether this build can do what the key asks for.
bool check_support(const Key& key, const JsonValue& value, const std::string& path, Draft& draft) {
  if (key.rules.support == Support::yes) return true;
  if (key.rules.support == Support::default_only && to_json(key.show(draft.spec)) == to_json(value))
    return true;
  report(value, path, fmt::format("found {}, not supported by this build", describe_found(value)), draft);
  return false;
}

void fill_key(JsonValue value, const Key& key, const std::string& path, Draft& draft) {
  expand_shorthand(value, key);
  const bool has_later_members = key.is_object() && !key.members.empty();
  if (!has_later_members && !check_support(key, value, path, draft)) return;
  if (!check_value(key, value, path, draft.problems)) return;
  draft.written[path] = value.position;
  if (!key.rules.note.empty()) draft.notes.push_back(path + ' ' + key.rules.note);
  if (key.is_object()) {
    fill_object(value, key, path, draft);
  } else {
    for (const JsonMember& member : value.members)
      draft.written[child_path(path, member.key)] = member.value.position;
    key.store(draft.spec, value);
  }
}

// The value of the sibling that decides whether a key has a meaning; nothing when that one is wrong itself.
std::optional<std::string> selected(const JsonValue& object, const Key& parent, const std::string& path,
                                    const Condition& condition, Draft& draft) {
  const bool is_written = object.find(condition.selector) != nullptr;
  const Key& selector = *parent.find(condition.selector);
  if (is_written ? !draft.has(child_path(path, condition.selector)) : selector.rules.required)
    return std::nullopt;
  return selector.show(draft.spec).text;
}

// A key that the chosen format, model or schedule does not use. When that choice was made on the command
// line, what the file says about another choice is not a mistake.
void report_unused(const JsonValue& value, const std::string& path, const std::string& selector_path,
                   const std::string& choice, Draft& draft) {
  if (draft.on_command_line(selector_path) && value.position.line != 0)
    draft.notes.push_back(
        fmt::format("{} is not used: {} is \"{}\" on the command line", path, selector_path, choice));
  else
    report(value, path,
           fmt::format("found {}, wanted nothing: {} is \"{}\", which does not use it", describe_found(value),
                       selector_path, choice),
           draft);
}

void check_member(const JsonValue& object, const Key& parent, const Key& key, const std::string& path,
                  Draft& draft) {
  const JsonMember* member = object.find(key.name);
  const std::string member_path = child_path(path, key.name);
  std::string because;
  if (key.rules.only_with) {
    const Condition& condition = *key.rules.only_with;
    const auto choice = selected(object, parent, path, condition, draft);
    if (!choice) return;
    const bool has_meaning = std::count(condition.values.begin(), condition.values.end(), *choice) > 0;
    const std::string selector_path = child_path(path, condition.selector);
    if (!has_meaning && member != nullptr && key.rules.support == Support::yes)
      report_unused(member->value, member_path, selector_path, *choice, draft);
    if (!has_meaning) return;
    because = fmt::format(", as {} is \"{}\"", selector_path, *choice);
  }
  if (key.rules.required && member == nullptr)
    report(object, member_path, fmt::format("found nothing, wanted {}{}", describe_wanted(key), because),
           draft);
}

void fill_object(const JsonValue& object, const Key& key, const std::string& path, Draft& draft) {
  std::set<std::string> seen;  // a key that comes again was reported by the reader
  for (const JsonMember& member : object.members) {
    if (!seen.insert(member.key).second) continue;
    const Key* known = key.find(member.key);
    if (known == nullptr) {
      report_unknown(member, key, path, draft);
    } else {
      fill_key(member.value, *known, child_path(path, member.key), draft);
    }
  }
  for (const Key& known : key.members) check_member(object, key, known, path, draft);
}

// Puts the default in the place of a value that is not to count.
void forget(const Key& key, const std::string& path, Draft& draft) {
  JobSpec defaults;
  key.store(draft.spec, key.show(defaults));
  draft.written.erase(path);
}

// Of two keys that exclude each other the command line's wins over the file's.
void check_exclusion(const JsonValue& root, const Key& keys, const std::string& path, const Key& key,
                     Draft& draft) {
  const std::string& other = key.rules.excludes;
  if (other.empty() || !draft.has(path) || !draft.has(other)) return;
  const TextPosition here = draft.where(path);
  const TextPosition there = draft.where(other);
  if ((here.line == 0) == (there.line == 0)) {
    if (there < here)
      draft.report(
          path, fmt::format("{} beside {} at {}, wanted one of the two", describe_found(*find_at(root, path)),
                            other, describe_place(draft.file, there)));
    return;
  }
  if (here.line != 0) return;
  forget(*find_key(keys, other), other, draft);
  draft.notes.push_back(fmt::format("{} of the command line replaces {} of {}", path, other,
                                    describe_place(draft.file, there)));
}

// A known key with the value null counts as absent.
void drop_nulls(JsonValue& object, const Key& key) {
  std::erase_if(object.members, [&](const JsonMember& member) {
    return member.value.is(JsonValue::Kind::null) && key.find(member.key) != nullptr;
  });
  for (JsonMember& member : object.members)
    if (const Key* below = key.find(member.key)) drop_nulls(member.value, *below);
}

}  // namespace

void fill_spec(JsonValue root, const Key& keys, Draft& draft) {
  drop_nulls(root, keys);
  fill_object(root, keys, "", draft);
  for_each_key(
      keys, [&](const std::string& path, const Key& key) { check_exclusion(root, keys, path, key, draft); });
}

void fill_part(const JsonValue& value, const Key& key, const std::string& path, Draft& draft) {
  fill_key(value, key, path, draft);
}

}  // namespace fleetrun::job
