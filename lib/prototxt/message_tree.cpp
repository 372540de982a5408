#include "prototxt/message_tree.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

namespace fleetrun::prototxt {
namespace {

using Field = pb::FieldDescriptor;
using InfoTree = pb::TextFormat::ParseInfoTree;

constexpr int kNotRepeated = -1;  // the index of the value of a field that is not repeated

// A float as the shortest number that becomes that float again: 0.8, not 0.800000012. For the largest float this number lies above
// every float, so it is clamped.
JsonValue shortest(float value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const double number = std::strtod(fmt::format("{}", value).c_str(), nullptr);
  return std::isinf(value) ? JsonValue(number) : JsonValue(std::clamp(number, -kLargest, kLargest));
}

JsonValue unsigned_number(std::uint64_t value) {
  JsonValue number(value);
  number.text = std::to_string(value);  // exact, also above 2^53
  return number;
}

// The value of a field by the getter for its kind.
template <typename Single, typename Repeated>
auto get(const pb::Message& message, const Field* field, int index, Single single, Repeated repeated) {
  const pb::Reflection& reflection = *message.GetReflection();
  return index == kNotRepeated ? (reflection.*single)(message, field)
                               : (reflection.*repeated)(message, field, index);
}

JsonValue scalar(const pb::Message& message, const Field* field, int index) {
  using R = pb::Reflection;
  switch (field->cpp_type()) {
    case Field::CPPTYPE_BOOL:
      return JsonValue(get(message, field, index, &R::GetBool, &R::GetRepeatedBool));
    case Field::CPPTYPE_INT32:
      return JsonValue(get(message, field, index, &R::GetInt32, &R::GetRepeatedInt32));
    case Field::CPPTYPE_INT64:
      return JsonValue(get(message, field, index, &R::GetInt64, &R::GetRepeatedInt64));
    case Field::CPPTYPE_UINT32:
      return JsonValue(get(message, field, index, &R::GetUInt32, &R::GetRepeatedUInt32));
    case Field::CPPTYPE_UINT64:
      return unsigned_number(get(message, field, index, &R::GetUInt64, &R::GetRepeatedUInt64));
    case Field::CPPTYPE_FLOAT:
      return shortest(get(message, field, index, &R::GetFloat, &R::GetRepeatedFloat));
    case Field::CPPTYPE_DOUBLE:
      return JsonValue(get(message, field, index, &R::GetDouble, &R::GetRepeatedDouble));
    case Field::CPPTYPE_ENUM:
      return JsonValue(get(message, field, index, &R::GetEnum, &R::GetRepeatedEnum)->name());
    default:
      return JsonValue(get(message, field, index, &R::GetString, &R::GetRepeatedString));
  }
}

class Walk {
 public:
  explicit Walk(const Places& places) : places_(places) {}

  JsonValue object(const pb::Message& message, const InfoTree& info, const std::string& path) {
    JsonValue tree = JsonValue::object();
    std::vector<const Field*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const Field* field : fields) {
      const std::string below = child_path(path, field->name());
      const TextPosition position = where(info, field, field->is_repeated() ? 0 : kNotRepeated, {1, 1});
      JsonValue value = field->is_repeated() ? list(message, field, info, below)
                                             : single(message, field, kNotRepeated, info, below);
      value.position = position;
      tree.members.push_back({field->name(), position, std::move(value)});
    }
    std::stable_sort(tree.members.begin(), tree.members.end(),
                     [](const JsonMember& a, const JsonMember& b) { return a.position < b.position; });
    return tree;
  }

  std::vector<std::string> at_default;

 private:
  // A list in brackets has only one position.
  TextPosition where(const InfoTree& info, const Field* field, int index, TextPosition otherwise) const {
    const auto place = info.GetLocation(field, index);
    return place.line < 0 ? otherwise : places_.at(place.line, place.column);
  }

  JsonValue single(const pb::Message& message, const Field* field, int index, const InfoTree& info,
                   const std::string& path) {
    JsonValue value;
    if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      static const InfoTree nowhere;
      const InfoTree* below = info.GetTreeForNested(field, index);
      value = object(get_message(message, field, index), below == nullptr ? nowhere : *below, path);
    } else {
      value = scalar(message, field, index);
      if (index == kNotRepeated && to_json(value) == to_json(default_of(field))) at_default.push_back(path);
    }
    return value;
  }

  static const pb::Message& get_message(const pb::Message& message, const Field* field, int index) {
    const pb::Reflection& reflection = *message.GetReflection();
    return index == kNotRepeated ? reflection.GetMessage(message, field)
                                 : reflection.GetRepeatedMessage(message, field, index);
  }

  JsonValue list(const pb::Message& message, const Field* field, const InfoTree& info,
                 const std::string& path) {
    std::vector<JsonValue> items;
    const int count = message.GetReflection()->FieldSize(message, field);
    items.reserve(static_cast<std::size_t>(count));
    for (int index = 0; index < count; ++index) {
      items.push_back(single(message, field, index, info, item_path(path, static_cast<std::size_t>(index))));
      items.back().position = where(info, field, index, where(info, field, 0, {1, 1}));
    }
    return JsonValue::list(std::move(items));
  }

  const Places& places_;
};

}  // namespace

JsonValue default_of(const Field* field) {
  switch (field->cpp_type()) {
    case Field::CPPTYPE_BOOL:
      return JsonValue(field->default_value_bool());
    case Field::CPPTYPE_INT32:
      return JsonValue(field->default_value_int32());
    case Field::CPPTYPE_INT64:
      return JsonValue(field->default_value_int64());
    case Field::CPPTYPE_UINT32:
      return JsonValue(field->default_value_uint32());
    case Field::CPPTYPE_UINT64:
      return unsigned_number(field->default_value_uint64());
    case Field::CPPTYPE_FLOAT:
      return shortest(field->default_value_float());
    case Field::CPPTYPE_DOUBLE:
      return JsonValue(field->default_value_double());
    case Field::CPPTYPE_ENUM:
      return JsonValue(field->default_value_enum()->name());
    default:
      return JsonValue(field->default_value_string());
  }
}

MessageTree tree_of(const ParsedText& parsed, const Places& places) {
  Walk walk(places);
  MessageTree tree;
  tree.root = walk.object(*parsed.message, parsed.places, "");
  tree.root.position = {1, 1};
  tree.at_default = std::move(walk.at_default);
  return tree;
}

}  // namespace fleetrun::prototxt
