// One key of the job file, as data: its name, what it may hold, whether this build has it, and the field of
// JobSpec that it fills. Parsing, `fleetrun config`, the JSON Schema and the table for people are all made
// from these.
#pragma once
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_value.h"
#include "job/spec/job_spec.h"

namespace fleetrun::job {

enum class ValueKind {
  object,
  boolean,
  integer,
  number,
  text,
  path,
  choice,
  integers,
  numbers,
  texts,
  text_map,
  number_map,
  class_weights  // the text "balanced", a list of numbers, or an object of numbers
};

// Elements of one dimension of an image or a layer: products of three stay far below 2^63.
constexpr double kLargestSide = 65536;

constexpr int kMostClasses = 1'000'000;  // a last layer of that width is already gigabytes

struct Range {  // of a number, or of each item of a list
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;  // least itself is out
  bool below_most = false;   // most itself is out

  static Range from(double least) { return {.least = least}; }
  static Range between(double least, double most) { return {.least = least, .most = most}; }
  static Range above(double least) { return {.least = least, .above_least = true}; }
};

// What this build makes of a key: everything, only its default, or nothing but saying so.
enum class Support { yes, default_only, later };

struct Choice {
  std::string name;
  int value = 0;  // of the enum
  Support support = Support::yes;
};

// The key has a meaning only when its sibling `selector` has one of these values.
struct Condition {
  std::string selector;
  std::vector<std::string> values;
};

struct KeyRules {
  Support support = Support::yes;
  Range range;
  std::vector<Choice> choices;
  std::size_t least_items = 0;  // of a list
  bool required = false;        // when `only_with` holds
  std::optional<Condition> only_with;
  std::string excludes;   // the path of another key that may not be written beside this key
  std::string shorthand;  // of an object: a plain number means this member
  std::string named_by;   // of an object: a text in its place belongs to this sibling, which names a file
  std::string absent;     // what holds when the key is not written, where that is not a fixed value
  std::string note;       // said when the key is written
  std::vector<std::string> aliases;  // whole paths that are taken for this key
};

struct Key {
  std::string name;
  ValueKind kind = ValueKind::object;
  std::string help;
  KeyRules rules;
  std::size_t item_count = 0;  // of a list with a fixed length, otherwise 0
  std::vector<Key> members;    // of an object

  // A value that was checked goes into the spec; what is in the spec comes out, null when it holds nothing.
  std::function<void(JobSpec&, const JsonValue&)> store;
  std::function<JsonValue(JobSpec&)> show;
  std::function<bool(const JobSpec&)> present;  // of an object that need not be there

  bool is_object() const { return kind == ValueKind::object; }
  const Key* find(std::string_view member) const;  // null when there is none
};

// The key with this path below `root`; null when there is none.
const Key* find_key(const Key& root, std::string_view path);

// Calls `visit(path, key)` for each key below `root`, objects before their members.
using KeyVisitor = std::function<void(const std::string& path, const Key& key)>;
void for_each_key(const Key& root, const KeyVisitor& visit);

}  // namespace fleetrun::job
