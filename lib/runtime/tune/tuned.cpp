#include "runtime/tune/tuned.h"

#include <cmath>

namespace fleetrun::runtime {
namespace {

using Kind = JsonValue::Kind;

double rounded(double value) {
  constexpr double kSteps = 1e6;
  return std::round(value * kSteps) / kSteps;
}

JsonValue effect_as_json(const Effect& effect) {
  return JsonValue::object({{"name", effect.name},
                            {"settings", effect.settings},
                            {"ratio", rounded(effect.ratio)},
                            {"low", rounded(effect.interval.low)},
                            {"high", rounded(effect.interval.high)},
                            {"turns", effect.turns},
                            {"advice", static_cast<int>(effect.advice)}});
}

JsonValue effects_as_json(const std::vector<Effect>& effects) {
  std::vector<JsonValue> items;
  items.reserve(effects.size());
  for (const Effect& effect : effects) items.push_back(effect_as_json(effect));
  return JsonValue::list(std::move(items));
}

double number_in(const JsonValue& object, const char* key) {
  const JsonMember* const member = object.find(key);
  return member == nullptr ? 0 : member->value.number;
}

std::string text_in(const JsonValue& object, const char* key) {
  const JsonMember* const member = object.find(key);
  return member == nullptr ? "" : member->value.text;
}

std::vector<std::string> texts_in(const JsonValue& object, const char* key) {
  std::vector<std::string> texts;
  if (const JsonMember* const member = object.find(key))
    for (const JsonValue& item : member->value.items) texts.push_back(item.text);
  return texts;
}

Effect parse_effect(const JsonValue& value) {
  return {.name = text_in(value, "name"),
          .settings = texts_in(value, "settings"),
          .ratio = number_in(value, "ratio"),
          .interval = {number_in(value, "low"), number_in(value, "high")},
          .turns = static_cast<int>(number_in(value, "turns")),
          .advice = static_cast<Advice>(static_cast<int>(number_in(value, "advice")))};
}

std::vector<Effect> effects_in(const JsonValue& object, const char* key) {
  std::vector<Effect> effects;
  if (const JsonMember* const member = object.find(key))
    for (const JsonValue& item : member->value.items) effects.push_back(parse_effect(item));
  return effects;
}

}  // namespace

JsonValue as_json(const Tuned& tuned) {
  return JsonValue::object({{"settings", tuned.settings},
                            {"confirmed", tuned.confirmed ? effect_as_json(*tuned.confirmed) : JsonValue()},
                            {"tried", effects_as_json(tuned.tried)},
                            {"explained", effects_as_json(tuned.explained)},
                            {"same", tuned.same},
                            {"left_out", tuned.left_out},
                            {"notes", tuned.notes},
                            {"default_ms", rounded(tuned.default_seconds * 1e3)},
                            {"seconds", rounded(tuned.seconds)},
                            {"made", tuned.made}});
}

std::optional<Tuned> parse_tuned(const JsonValue& value) {
  if (!value.is(Kind::object) || value.find("settings", Kind::list) == nullptr ||
      value.find("tried", Kind::list) == nullptr)
    return std::nullopt;
  Tuned tuned = {.settings = texts_in(value, "settings"),
                 .confirmed = std::nullopt,
                 .tried = effects_in(value, "tried"),
                 .explained = effects_in(value, "explained"),
                 .same = texts_in(value, "same"),
                 .left_out = texts_in(value, "left_out"),
                 .notes = texts_in(value, "notes"),
                 .default_seconds = number_in(value, "default_ms") / 1e3,
                 .seconds = number_in(value, "seconds"),
                 .made = text_in(value, "made")};
  if (const JsonValue* const confirmed = value.find("confirmed", Kind::object))
    tuned.confirmed = parse_effect(*confirmed);
  return tuned;
}

}  // namespace fleetrun::runtime
