#include "job/read/json_tree.h"

#include <algorithm>
#include <utility>

namespace fleetrun::job {
namespace {

// "train.epochs" -> "train", "epochs"; "train" -> "train", "".
std::pair<std::string_view, std::string_view> split(std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {path, ""};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace

const JsonValue* find_at(const JsonValue& root, std::string_view path) {
  const auto [first, rest] = split(path);
  const JsonMember* member = root.find(first);
  return member == nullptr || rest.empty() ? (member == nullptr ? nullptr : &member->value)
                                           : find_at(member->value, rest);
}

std::optional<JsonValue> take_at(JsonValue& root, std::string_view path) {
  const auto [first, rest] = split(path);
  JsonMember* member = root.find(first);
  if (member == nullptr) return std::nullopt;
  if (!rest.empty()) return take_at(member->value, rest);
  JsonValue value = std::move(member->value);
  root.members.erase(root.members.begin() + (member - root.members.data()));
  return value;
}

std::optional<std::string> put_at(JsonValue& root, std::string_view path, JsonValue value) {
  const auto [first, rest] = split(path);
  JsonMember* member = root.find(first);
  if (member == nullptr) {
    JsonValue object = JsonValue::object();
    object.position = value.position;
    root.add(std::string(first), std::move(object));
    member = &root.members.back();
  }
  if (rest.empty()) {
    member->value = std::move(value);
    member->position = member->value.position;
    return std::nullopt;
  }
  if (member->value.is(JsonValue::Kind::null)) member->value = JsonValue::object();
  if (!member->value.is(JsonValue::Kind::object)) return std::string(first);
  const auto blocked = put_at(member->value, rest, std::move(value));
  return blocked ? std::optional(std::string(first) + '.' + *blocked) : std::nullopt;
}

}  // namespace fleetrun::job
