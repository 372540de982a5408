// Makes the keys of the table from the fields of JobSpec: the type of the field says what the key may hold.
#pragma once
#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "job/keys/key.h"

namespace fleetrun::job {

// Finds a part of the spec.
template <typename Part>
using At = std::function<Part&(JobSpec&)>;

// A part of the spec whose fields become keys: `train(&TrainSpec::seed)`.
template <typename Owner>
struct Section {
  At<Owner> at;

  template <typename Field>
  At<Field> operator()(Field Owner::*member) const {
    return [owner = at, member](JobSpec& spec) -> Field& { return owner(spec).*member; };
  }
};

// Whole numbers are taken when they are written as 64.0 or 1e3, too.
std::optional<std::int64_t> whole_number(const JsonValue& value);

// How one type of field is read and shown. `Kind` is what its key holds.
template <typename Field, typename = void>
struct FieldType;

template <>
struct FieldType<bool> {
  static constexpr ValueKind kKind = ValueKind::boolean;
  static bool read(const JsonValue& value) { return value.boolean; }
  static JsonValue show(bool field) { return JsonValue(field); }
};

template <typename Whole>
struct FieldType<Whole, std::enable_if_t<std::is_same_v<Whole, int> || std::is_same_v<Whole, std::int64_t>>> {
  static constexpr ValueKind kKind = ValueKind::integer;
  static Whole read(const JsonValue& value) { return static_cast<Whole>(*whole_number(value)); }
  static JsonValue show(Whole field) { return JsonValue(field); }
};

template <>
struct FieldType<double> {
  static constexpr ValueKind kKind = ValueKind::number;
  static double read(const JsonValue& value) { return value.number; }
  static JsonValue show(double field) { return JsonValue(field); }
};

template <>
struct FieldType<std::string> {
  static constexpr ValueKind kKind = ValueKind::text;
  static std::string read(const JsonValue& value) { return value.text; }
  static JsonValue show(const std::string& field) { return JsonValue(field); }
};

template <typename Item>
struct FieldType<std::vector<Item>> {
  static constexpr ValueKind kKind = std::is_same_v<Item, int>      ? ValueKind::integers
                                     : std::is_same_v<Item, double> ? ValueKind::numbers
                                                                    : ValueKind::texts;
  static std::vector<Item> read(const JsonValue& value) {
    std::vector<Item> field;
    for (const JsonValue& item : value.items) field.push_back(FieldType<Item>::read(item));
    return field;
  }
  static JsonValue show(const std::vector<Item>& field) {
    std::vector<JsonValue> items;
    items.reserve(field.size());
    for (const Item& item : field) items.push_back(FieldType<Item>::show(item));
    return JsonValue::list(std::move(items));
  }
};

template <std::size_t Count>
struct FieldType<std::array<int, Count>> {
  static constexpr ValueKind kKind = ValueKind::integers;
  static std::array<int, Count> read(const JsonValue& value) {
    std::array<int, Count> field{};
    for (std::size_t i = 0; i < Count; ++i) field[i] = FieldType<int>::read(value.items[i]);
    return field;
  }
  static JsonValue show(const std::array<int, Count>& field) {
    return FieldType<std::vector<int>>::show({field.begin(), field.end()});
  }
};

template <>
struct FieldType<std::map<std::string, std::string>> {
  static constexpr ValueKind kKind = ValueKind::text_map;
  static std::map<std::string, std::string> read(const JsonValue& value) {
    std::map<std::string, std::string> field;
    for (const JsonMember& member : value.members) field.emplace(member.key, member.value.text);
    return field;
  }
  static JsonValue show(const std::map<std::string, std::string>& field) {
    JsonValue value = JsonValue::object();
    for (const auto& [name, text] : field) value.add(name, text);
    return value;
  }
};

template <>
struct FieldType<std::map<std::string, double>> {
  static constexpr ValueKind kKind = ValueKind::number_map;
  static std::map<std::string, double> read(const JsonValue& value) {
    std::map<std::string, double> field;
    for (const JsonMember& member : value.members) field.emplace(member.key, member.value.number);
    return field;
  }
  static JsonValue show(const std::map<std::string, double>& field) {
    JsonValue value = JsonValue::object();
    for (const auto& [name, number] : field) value.add(name, number);
    return value;
  }
};

template <>
struct FieldType<ClassWeights> {
  static constexpr ValueKind kKind = ValueKind::class_weights;
  static ClassWeights read(const JsonValue& value) {
    using List = FieldType<std::vector<double>>;
    using Map = FieldType<std::map<std::string, double>>;
    return {.balanced = value.is(JsonValue::Kind::text),
            .by_number = List::read(value),
            .by_name = Map::read(value)};
  }
  static JsonValue show(const ClassWeights& field) {
    if (field.balanced) return JsonValue(kBalanced);
    if (!field.by_number.empty()) return FieldType<std::vector<double>>::show(field.by_number);
    return FieldType<std::map<std::string, double>>::show(field.by_name);
  }
};

template <typename Field>
struct FieldType<std::optional<Field>> {
  static constexpr ValueKind kKind = FieldType<Field>::kKind;
  static std::optional<Field> read(const JsonValue& value) {
    if (value.is(JsonValue::Kind::null)) return std::nullopt;
    return FieldType<Field>::read(value);
  }
  static JsonValue show(const std::optional<Field>& field) {
    return field ? FieldType<Field>::show(*field) : JsonValue();
  }
};

// Items of a list with a fixed length, otherwise 0.
template <typename Field>
inline constexpr std::size_t kItemCount = 0;
template <std::size_t Count>
inline constexpr std::size_t kItemCount<std::array<int, Count>> = Count;
template <typename Field>
inline constexpr std::size_t kItemCount<std::optional<Field>> = kItemCount<Field>;

// Fields of type int hold no more than that.
template <typename Field>
inline constexpr bool kHoldsInt = std::is_same_v<Field, int> || std::is_same_v<Field, std::optional<int>> ||
                                  std::is_same_v<Field, std::vector<int>> || kItemCount<Field> != 0;

// The enum of a field that holds one of several names.
template <typename Field>
struct Chosen {
  using Type = Field;
};
template <typename Field>
struct Chosen<std::optional<Field>> {
  using Type = Field;
};
template <typename Field>
using ChoiceOf = typename Chosen<Field>::Type;

template <typename Field>
std::enable_if_t<!std::is_enum_v<ChoiceOf<Field>>, Key> make_key(const std::string& name, At<Field> at,
                                                                 const std::string& help,
                                                                 KeyRules rules = {}) {
  if (kHoldsInt<Field>) {
    rules.range.least = std::max(rules.range.least, double{INT_MIN});
    rules.range.most = std::min(rules.range.most, double{INT_MAX});
  }
  return {.name = name,
          .kind = FieldType<Field>::kKind,
          .help = help,
          .rules = std::move(rules),
          .item_count = kItemCount<Field>,
          .members = {},
          .store = [at](JobSpec& spec, const JsonValue& value) { at(spec) = FieldType<Field>::read(value); },
          .show = [at](JobSpec& spec) { return FieldType<Field>::show(at(spec)); },
          .present = nullptr};
}

// One of several names, for an enum or an optional one.
template <typename Field>
std::enable_if_t<std::is_enum_v<ChoiceOf<Field>>, Key> make_key(const std::string& name, At<Field> at,
                                                                const std::string& help,
                                                                const KeyRules& rules) {
  const std::vector<Choice> choices = rules.choices;
  const auto store = [at, choices](JobSpec& spec, const JsonValue& value) {
    for (const Choice& choice : choices)
      if (choice.name == value.text) at(spec) = static_cast<ChoiceOf<Field>>(choice.value);
  };
  const auto show = [at, choices](JobSpec& spec) {
    for (const Choice& choice : choices)
      if (at(spec) == static_cast<ChoiceOf<Field>>(choice.value)) return JsonValue(choice.name);
    return JsonValue();
  };
  return {.name = name,
          .kind = ValueKind::choice,
          .help = help,
          .rules = rules,
          .item_count = 0,
          .members = {},
          .store = store,
          .show = show,
          .present = nullptr};
}

// A text that names a file or folder; relative ones start at the folder of the job file.
template <typename Field>
Key make_path_key(const std::string& name, At<Field> at, const std::string& help, KeyRules rules = {}) {
  Key key = make_key(name, std::move(at), help, std::move(rules));
  key.kind = ValueKind::path;
  return key;
}

template <typename Enum>
Choice choice(std::string name, Enum value, Support support = Support::yes) {
  return {std::move(name), static_cast<int>(value), support};
}

Key make_object_key(std::string name, std::string help, std::vector<Key> members, KeyRules rules = {});

// A known name of which no part is built yet.
Key make_later_key(std::string name, std::string help);

}  // namespace fleetrun::job
