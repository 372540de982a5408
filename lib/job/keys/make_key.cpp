#include "job/keys/make_key.h"

#include <cmath>

namespace fleetrun::job {
namespace {

constexpr double kExactWholeNumbers =
    9007199254740992.0;  // 2^53: up to here a double holds each whole number

}  // namespace

std::optional<std::int64_t> whole_number(const JsonValue& value) {
  if (value.is(JsonValue::Kind::integer)) return value.integer;
  if (!value.is(JsonValue::Kind::number) || std::abs(value.number) > kExactWholeNumbers) return std::nullopt;
  if (std::trunc(value.number) != value.number) return std::nullopt;
  return static_cast<std::int64_t>(value.number);
}

Key make_object_key(std::string name, std::string help, std::vector<Key> members, KeyRules rules) {
  Key key;
  key.name = std::move(name);
  key.help = std::move(help);
  key.rules = std::move(rules);
  key.members = std::move(members);
  return key;
}

Key make_later_key(std::string name, std::string help) {
  Key key = make_object_key(std::move(name), std::move(help), {});
  key.rules.support = Support::later;
  return key;
}

}  // namespace fleetrun::job
