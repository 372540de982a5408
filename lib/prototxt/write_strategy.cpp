#include "prototxt/write_strategy.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "prototxt/message_tree.h"
#include "prototxt/schema.h"

namespace fleetrun::prototxt {
namespace {

using Field = pb::FieldDescriptor;
using Kind = JsonValue::Kind;
using job::PaddleVersion;

const char* name_of(PaddleVersion version) {
  return version == PaddleVersion::paddle_2 ? "PaddlePaddle 2.0" : "PaddlePaddle 3";
}

std::string shown(const JsonValue& value) {
  if (value.is(Kind::list)) return "a list";
  return value.is(Kind::object) ? "an object" : to_json(value);
}

// A whole number of this type; nothing for any other value.
template <typename Whole>
std::optional<Whole> whole(const JsonValue& value) {
  Whole number = 0;
  const char* const end = value.text.data() + value.text.size();
  if (value.is(Kind::integer) || value.is(Kind::number)) {
    const auto [stop, problem] = std::from_chars(value.text.data(), end, number);
    if (problem == std::errc() && stop == end) return number;
  }
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!value.is(Kind::number) || std::trunc(value.number) != value.number || std::abs(value.number) > kExact)
    return std::nullopt;
  const auto wide = static_cast<std::int64_t>(value.number);
  return std::in_range<Whole>(wide) ? std::optional(static_cast<Whole>(wide)) : std::nullopt;
}

std::optional<double> number(const JsonValue& value) {
  if (!value.is(Kind::integer) && !value.is(Kind::number)) return std::nullopt;
  return value.number;
}

std::optional<float> small_number(const JsonValue& value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  constexpr double kRoundedUp = 0x1.ffffffp127;  // below it, a number rounds to the largest float
  const auto wide = number(value);
  if (!wide || !std::isfinite(*wide)) return wide;
  if (std::abs(*wide) >= kRoundedUp) return std::nullopt;
  return static_cast<float>(std::clamp(*wide, -kLargest, kLargest));
}

// Keys have limits such as "above 0" and "above 1", which the rounded number would not keep.
bool rounds_to_limit(const JsonValue& value) {
  const auto wide = number(value);
  const auto narrow = small_number(value);
  return narrow && (*narrow == 0 || *narrow == 1) && *wide != static_cast<double>(*narrow);
}

// Where a value goes.
struct Slot {
  const JsonValue& found;
  const Field* field;
  pb::Message& message;
  const std::string& path;
};

class Writer {
 public:
  Writer(const Schema& schema, const Schema& other, PaddleVersion version)
      : schema_(schema), other_(other), version_(version) {}

  job::StrategyText write(const JsonValue& root, const std::vector<std::string>& in_full) {
    const std::unique_ptr<pb::Message> message = schema_.make_strategy();
    fill(root, *message, &other_.strategy(), "");
    for (const std::string& name : in_full) complete(*message, name);
    pb::TextFormat::Printer printer;
    printer.SetUseUtf8StringEscaping(true);
    printer.PrintToString(*message, &written_.text);
    return std::move(written_);
  }

 private:
  void report(const JsonValue& value, const std::string& path, std::string message) {
    written_.problems.push_back({value.position, path, std::move(message)});
  }

  // `other`: the same message in the other version; null if it is not there.
  void fill(const JsonValue& object, pb::Message& message, const pb::Descriptor* other,
            const std::string& path) {
    for (const JsonMember& member : object.members) {
      const std::string below = child_path(path, member.key);
      const Field* field = message.GetDescriptor()->FindFieldByName(member.key);
      const Field* there = other == nullptr ? nullptr : other->FindFieldByName(member.key);
      if (field == nullptr)
        report_missing(member.value, there, below);
      else
        add(member.value, field, message, there == nullptr ? nullptr : there->message_type(), below);
    }
  }

  // Names each value in a message that this version does not have.
  void report_missing(const JsonValue& value, const Field* there, const std::string& path) {
    const pb::Descriptor* other = there == nullptr ? nullptr : there->message_type();
    for (const JsonMember& member : value.members)
      report_missing(member.value, other == nullptr ? nullptr : other->FindFieldByName(member.key),
                     child_path(path, member.key));
    if (!value.members.empty()) return;
    report(value, path,
           fmt::format("found a value for which {} has no field{}", name_of(version_),
                       there == nullptr ? "" : fmt::format("; {} has one", name_of(other_version()))));
  }

  void complete(pb::Message& strategy, const std::string& name) {
    const Field* section = strategy.GetDescriptor()->FindFieldByName(name);
    if (section == nullptr) return;
    pb::Message& message = *strategy.GetReflection()->MutableMessage(&strategy, section);
    for (int i = 0; i < section->message_type()->field_count(); ++i) {
      const Field* field = section->message_type()->field(i);
      const bool is_plain = !field->is_repeated() && field->cpp_type() != Field::CPPTYPE_MESSAGE;
      if (is_plain && !message.GetReflection()->HasField(message, field))
        set(default_of(field), field, message, nullptr, name);
    }
  }

  PaddleVersion other_version() const {
    return version_ == PaddleVersion::paddle_2 ? PaddleVersion::paddle_3 : PaddleVersion::paddle_2;
  }

  void add(const JsonValue& value, const Field* field, pb::Message& message, const pb::Descriptor* other,
           const std::string& path) {
    if (!field->is_repeated()) return set(value, field, message, other, path);
    if (!value.is(Kind::list))
      return report(value, path, fmt::format("found {}, wanted a list", shown(value)));
    for (std::size_t i = 0; i < value.items.size(); ++i)
      set(value.items[i], field, message, other, item_path(path, i));
  }

  // Sets a field, or adds to a repeated one.
  template <typename Value, typename Single, typename Repeated>
  void put(const Slot& slot, const std::optional<Value>& value, const char* wanted, Single single,
           Repeated repeated) {
    const pb::Reflection& reflection = *slot.message.GetReflection();
    if (!value)
      return report(slot.found, slot.path, fmt::format("found {}, wanted {}", shown(slot.found), wanted));
    if (slot.field->is_repeated())
      (reflection.*repeated)(&slot.message, slot.field, *value);
    else
      (reflection.*single)(&slot.message, slot.field, *value);
  }

  void set(const JsonValue& value, const Field* field, pb::Message& message, const pb::Descriptor* other,
           const std::string& path) {
    using R = pb::Reflection;
    const Slot slot = {value, field, message, path};
    constexpr const char* kWhole = "a whole number in the range of the field";
    switch (field->cpp_type()) {
      case Field::CPPTYPE_BOOL: {
        const auto truth = value.is(Kind::boolean) ? std::optional(value.boolean) : std::nullopt;
        return put(slot, truth, "true or false", &R::SetBool, &R::AddBool);
      }
      case Field::CPPTYPE_INT32:
        return put(slot, whole<std::int32_t>(value), kWhole, &R::SetInt32, &R::AddInt32);
      case Field::CPPTYPE_INT64:
        return put(slot, whole<std::int64_t>(value), kWhole, &R::SetInt64, &R::AddInt64);
      case Field::CPPTYPE_UINT32:
        return put(slot, whole<std::uint32_t>(value), kWhole, &R::SetUInt32, &R::AddUInt32);
      case Field::CPPTYPE_UINT64:
        return put(slot, whole<std::uint64_t>(value), kWhole, &R::SetUInt64, &R::AddUInt64);
      case Field::CPPTYPE_FLOAT:
        if (rounds_to_limit(value))
          return report(
              value, path,
              fmt::format("found {}, wanted a number that a float does not round to 0 or 1", shown(value)));
        return put(slot, small_number(value), "a number in the range of a float", &R::SetFloat, &R::AddFloat);
      case Field::CPPTYPE_DOUBLE:
        return put(slot, number(value), "a number", &R::SetDouble, &R::AddDouble);
      case Field::CPPTYPE_ENUM: {
        const pb::EnumValueDescriptor* known =
            value.is(Kind::text) ? field->enum_type()->FindValueByName(value.text) : nullptr;
        return put(slot, known == nullptr ? std::nullopt : std::optional(known), "a name of the schema",
                   &R::SetEnum, &R::AddEnum);
      }
      case Field::CPPTYPE_STRING: {
        const auto text = value.is(Kind::text) ? std::optional(value.text) : std::nullopt;
        return put(slot, text, "a string", &R::SetString, &R::AddString);
      }
      default:
        return set_message(value, field, message, other, path);
    }
  }

  void set_message(const JsonValue& value, const Field* field, pb::Message& message,
                   const pb::Descriptor* other, const std::string& path) {
    if (!value.is(Kind::object))
      return report(value, path, fmt::format("found {}, wanted an object", shown(value)));
    const pb::Reflection& reflection = *message.GetReflection();
    fill(value,
         field->is_repeated() ? *reflection.AddMessage(&message, field)
                              : *reflection.MutableMessage(&message, field),
         other, path);
  }

  const Schema& schema_;
  const Schema& other_;
  PaddleVersion version_;
  job::StrategyText written_;
};

}  // namespace

job::StrategyText write_strategy(const JsonValue& root, PaddleVersion version,
                                 const std::vector<std::string>& in_full) {
  const Schema& two = schema_of_paddle_2();
  const Schema& three = schema_of_paddle_3();
  return version == PaddleVersion::paddle_2 ? Writer(two, three, version).write(root, in_full)
                                            : Writer(three, two, version).write(root, in_full);
}

}  // namespace fleetrun::prototxt
