#include "job/keys/check_value.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/suggest.h"
#include "job/keys/make_key.h"

namespace fleetrun::job {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kLongestShownText = 60;  // bytes

bool is_number(const JsonValue& value) { return value.is(Kind::integer) || value.is(Kind::number); }

bool is_within(double number, const Range& range) {
  const bool high_enough = range.above_least ? number > range.least : number >= range.least;
  const bool low_enough = range.below_most ? number < range.most : number <= range.most;
  return high_enough && low_enough;
}

std::string describe_limits(const Range& range) {
  const bool has_least = std::isfinite(range.least) && range.least != INT_MIN;
  const bool has_most = std::isfinite(range.most) && range.most != INT_MAX;
  const std::string least = fmt::format("{}{}", range.above_least ? "above " : "", range.least);
  if (has_least && has_most)
    return fmt::format(" {}{} {}{}", range.above_least ? "" : "from ", least,
                       range.above_least ? "and " : "to ",
                       range.below_most    ? fmt::format("below {}", range.most)
                       : range.above_least ? fmt::format("at most {}", range.most)
                                           : fmt::format("{}", range.most));
  if (has_least) return fmt::format(" {}{}", range.above_least ? "" : "of at least ", least);
  return has_most ? fmt::format(" of at most {}", range.most) : "";
}

std::string describe_items(const Key& key) {
  switch (key.kind) {
    case ValueKind::integer:
      return "a whole number" + describe_limits(key.rules.range);
    case ValueKind::number:
      return "a number" + describe_limits(key.rules.range);
    case ValueKind::integers:
      return "whole numbers" + describe_limits(key.rules.range);
    case ValueKind::numbers:
      return "numbers" + describe_limits(key.rules.range);
    default:
      return "strings";
  }
}

std::string describe_list(const Key& key) {
  const std::string items = describe_items(key);
  if (key.item_count > 0) return fmt::format("a list of {} {}", key.item_count, items);
  if (key.rules.least_items > 0) return fmt::format("a list of {} or more {}", key.rules.least_items, items);
  return "a list of " + items;
}

std::vector<std::string> names_of(const std::vector<Choice>& choices) {
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (const Choice& choice : choices) names.push_back(choice.name);
  return names;
}

std::string quoted_list(const std::vector<std::string>& names) {
  return fmt::format("\"{}\"", fmt::join(names, "\", \""));
}

// Names the limit of our integers only when the value exceeds it.
std::string describe_size(const Key& key, const JsonValue& value) {
  if (!is_number(value) || key.kind != ValueKind::integer) return "";
  if (key.rules.range.most == INT_MAX && value.number > INT_MAX)
    return fmt::format(" and at most {}", INT_MAX);
  return std::abs(value.number) > static_cast<double>(INT64_MAX) / 2 ? " that fits into 64 bits" : "";
}

// A problem's message, or nothing when the value is good.
using Fault = std::optional<std::string>;

Fault unless(bool good, const Key& key, const JsonValue& value) {
  if (good) return std::nullopt;
  return fmt::format("found {}, wanted {}{}", describe_found(value), describe_wanted(key),
                     describe_size(key, value));
}

Fault find_choice_fault(const Key& key, const JsonValue& value) {
  const auto& choices = key.rules.choices;
  const auto chosen = std::find_if(choices.begin(), choices.end(),
                                   [&](const Choice& choice) { return choice.name == value.text; });
  if (!value.is(Kind::text) || chosen == choices.end()) {
    const std::string hint = value.is(Kind::text) ? did_you_mean(value.text, names_of(choices)) : "";
    return *unless(false, key, value) + hint;
  }
  if (chosen->support == Support::yes) return std::nullopt;
  return fmt::format("found {}, not supported by this build, which has {}", describe_found(value),
                     quoted_list(supported_choices(key)));
}

// Texts end up in messages, paths and environments, where control characters only do harm.
Fault find_text_fault(const Key& key, const JsonValue& value) {
  if (!value.is(Kind::text)) return unless(false, key, value);
  for (const char letter : value.text) {
    const auto byte = static_cast<unsigned char>(letter);
    if ((byte < 0x20 && byte != 0) || byte == 0x7F)  // of U+0000 the reader has told
      return fmt::format("found {} with the control character U+{:04X}, wanted text without it",
                         describe_found(value), byte);
  }
  return unless(key.kind != ValueKind::path || !value.text.empty(), key, value);
}

// Trainings compute with 32-bit floats, in which such a number is 0 or infinite, or becomes an upper limit that is out.
Fault find_float_fault(const Key& key, const JsonValue& value) {
  using Float = std::numeric_limits<float>;
  const Range& range = key.rules.range;
  const double size = std::abs(value.number);
  if (value.number != 0 && (size < double{Float::min()} || size > double{Float::max()}))
    return fmt::format("found {}, wanted {} that a 32-bit float can hold, {}", describe_found(value),
                       describe_wanted(key), size < 1 ? "1.2e-38 or more" : "3.4e38 or less");
  const double rounded{static_cast<float>(value.number)};
  if (range.below_most && rounded >= range.most)
    return fmt::format("found {}, which is {} as a 32-bit float, wanted {}", describe_found(value), rounded,
                       describe_wanted(key));
  return std::nullopt;
}

Fault find_scalar_fault(const Key& key, const JsonValue& value) {
  const bool in_range = is_number(value) && is_within(value.number, key.rules.range);
  switch (key.kind) {
    case ValueKind::boolean:
      return unless(value.is(Kind::boolean), key, value);
    case ValueKind::integer:
      return unless(in_range && whole_number(value).has_value(), key, value);
    case ValueKind::number:
      return in_range ? find_float_fault(key, value) : unless(false, key, value);
    case ValueKind::choice:
      return find_choice_fault(key, value);
    default:
      return find_text_fault(key, value);
  }
}

ValueKind kind_of_items(ValueKind list) {
  switch (list) {
    case ValueKind::integers:
      return ValueKind::integer;
    case ValueKind::numbers:
    case ValueKind::class_weights:
      return ValueKind::number;
    default:
      return ValueKind::text;
  }
}

bool is_too_large_to_read(const JsonValue& value) {
  return value.is(Kind::number) && std::isinf(value.number);
}

bool check_items(const Key& key, const JsonValue& list, const std::string& path,
                 std::vector<JsonProblem>& problems) {
  Key item;
  item.kind = kind_of_items(key.kind);
  item.rules.range = key.rules.range;
  bool good = true;
  for (std::size_t i = 0; i < list.items.size(); ++i)
    good = check_value(item, list.items[i], item_path(path, i), problems) && good;
  return good;
}

bool check_map(const Key& key, const JsonValue& map, const std::string& path,
               std::vector<JsonProblem>& problems) {
  Key item;
  item.kind = key.kind == ValueKind::text_map ? ValueKind::text : ValueKind::number;
  item.rules.range = key.rules.range;
  bool good = true;
  for (const JsonMember& member : map.members)
    good = check_value(item, member.value, child_path(path, member.key), problems) && good;
  return good;
}

bool check_class_weights(const Key& key, const JsonValue& value, const std::string& path,
                         std::vector<JsonProblem>& problems) {
  const bool is_filled = !value.items.empty() || !value.members.empty();
  if (value.is(Kind::list) && is_filled) return check_items(key, value, path, problems);
  if (value.is(Kind::object) && is_filled) return check_map(key, value, path, problems);
  if (value.is(Kind::text) && value.text == kBalanced) return true;
  problems.push_back({value.position, path, *unless(false, key, value)});
  return false;
}

}  // namespace

bool check_value(const Key& key, const JsonValue& value, const std::string& path,
                 std::vector<JsonProblem>& problems) {
  if (is_too_large_to_read(value)) return false;  // the reader has said so
  const auto report = [&](const Fault& fault) {
    if (fault) problems.push_back({value.position, path, *fault});
    return !fault;
  };
  switch (key.kind) {
    case ValueKind::integers:
    case ValueKind::numbers:
    case ValueKind::texts: {
      const std::size_t count = value.items.size();
      const bool right_length = key.item_count > 0 ? count == key.item_count : count >= key.rules.least_items;
      if (!report(unless(value.is(Kind::list) && right_length, key, value))) return false;
      return check_items(key, value, path, problems);
    }
    case ValueKind::text_map:
    case ValueKind::number_map:
      return report(unless(value.is(Kind::object), key, value)) && check_map(key, value, path, problems);
    case ValueKind::class_weights:
      return check_class_weights(key, value, path, problems);
    case ValueKind::object:
      return report(unless(value.is(Kind::object), key, value));
    default:
      return report(find_scalar_fault(key, value));
  }
}

std::vector<std::string> supported_choices(const Key& key) {
  std::vector<std::string> names;
  for (const Choice& choice : key.rules.choices)
    if (choice.support == Support::yes) names.push_back(choice.name);
  return names;
}

std::string describe_found(const JsonValue& value) {
  switch (value.kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return value.boolean ? "true" : "false";
    case Kind::integer:
    case Kind::number:
      return value.text.substr(0, kLongestShownText);
    case Kind::text:
      return shortened_quote(value.text, kLongestShownText);
    case Kind::list:
      return fmt::format("a list of {}", value.items.size());
    case Kind::object:
      return "an object";
  }
  return "";
}

std::string describe_wanted(const Key& key) {
  switch (key.kind) {
    case ValueKind::object:
      if (!key.rules.named_by.empty()) return "an object or the path of a file";
      return key.rules.shorthand.empty() ? "an object" : "a number or an object";
    case ValueKind::boolean:
      return "true or false";
    case ValueKind::integer:
    case ValueKind::number:
      return describe_items(key);
    case ValueKind::text:
      return "a string";
    case ValueKind::path:
      return "a path";
    case ValueKind::choice:
      return "one of " + quoted_list(supported_choices(key));
    case ValueKind::integers:
    case ValueKind::numbers:
    case ValueKind::texts:
      return describe_list(key);
    case ValueKind::text_map:
      return "an object of strings";
    case ValueKind::number_map:
      return "an object of numbers";
    case ValueKind::class_weights: {
      const std::string limits = describe_limits(key.rules.range);
      return fmt::format("\"{0}\", a list of numbers{1} or an object of numbers{1}", kBalanced, limits);
    }
  }
  return "";
}

std::string did_you_mean(const std::string& found, const std::vector<std::string>& names) {
  const auto meant = closest(found, names);
  return meant ? fmt::format("; did you mean \"{}\"?", *meant) : "";
}

}  // namespace fleetrun::job
