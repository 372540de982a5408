#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {
namespace {

JsonValue to_value(const std::vector<std::vector<int>>& lists) {
  JsonValue value = JsonValue::list({});
  for (const auto& list : lists) value.items.emplace_back(list);
  return value;
}

JsonValue to_value(const Endpoint& endpoint) {
  return JsonValue::object({{"host", endpoint.host}, {"port", endpoint.port}});
}

JsonValue to_value(const StorePlace& store) {
  JsonValue value = to_value(store.endpoint);
  value.add("also_at", store.also_at);
  return value;
}

JsonValue to_value(const Terms& terms) {
  JsonValue value = JsonValue::list({});
  for (const auto& [name, text] : terms) value.items.push_back(JsonValue::list({name, text}));
  return value;
}

JsonValue to_value(const std::optional<NodeFailure>& failure) {
  if (!failure) return JsonValue();
  return JsonValue::object({{"at", failure->at},
                            {"error", failure->error},
                            {"cause", failure->cause},
                            {"line", failure->line},
                            {"block", failure->block},
                            {"exit_code", failure->exit_code},
                            {"signal", failure->signal},
                            {"rank", failure->rank},
                            {"evidence", failure->evidence}});
}

JsonValue to_value(const std::vector<NodePlace>& nodes) {
  JsonValue value = JsonValue::list({});
  for (const NodePlace& node : nodes)
    value.items.push_back(JsonValue::object({{"address", node.address},
                                             {"host", node.host},
                                             {"logs", node.logs},
                                             {"device_ids", to_value(node.device_ids)}}));
  return value;
}

JsonValue to_value(const std::vector<Endpoint>& endpoints) {
  JsonValue value = JsonValue::list({});
  for (const Endpoint& endpoint : endpoints) value.items.push_back(to_value(endpoint));
  return value;
}

JsonValue to_value(const AttemptSeen& one) {
  return JsonValue::object({{"attempt", one.attempt}, {"nodes", one.nodes}, {"node_rank", one.node_rank}});
}

JsonValue to_value(const AttemptsSeen& seen) {
  JsonValue ready_for = JsonValue::list({});
  for (const AttemptSeen& one : seen.ready_for) ready_for.items.push_back(to_value(one));
  return JsonValue::object(
      {{"started", seen.started ? to_value(*seen.started) : JsonValue()}, {"ready_for", ready_for}});
}

std::int64_t to_ns(Clock::duration time) { return time / std::chrono::nanoseconds(1); }

std::pair<const char*, JsonValue> to_message(const Join& join) {
  return {"join", JsonValue::object({{"address", join.address},
                                     {"host", join.host},
                                     {"logs", join.logs},
                                     {"node_rank", join.node_rank},
                                     {"device_ids", to_value(join.device_ids)},
                                     {"terms", to_value(join.terms)},
                                     {"coordinates", join.coordinates},
                                     {"seen", to_value(join.seen)}})};
}
std::pair<const char*, JsonValue> to_message(const Beat& beat) {
  return {"beat", JsonValue::object({{"sent", beat.sent}})};
}
std::pair<const char*, JsonValue> to_message(const Ready& ready) {
  return {"ready", JsonValue::object({{"attempt", ready.attempt},
                                      {"ports", ready.ports},
                                      {"master_port", ready.master_port},
                                      {"store", to_value(ready.store)},
                                      {"reaches", ready.reaches}})};
}
std::pair<const char*, JsonValue> to_message(const Failed& failed) {
  JsonValue fields =
      JsonValue::object({{"attempt", failed.attempt}, {"failure", to_value(std::optional(failed.failure))}});
  if (failed.node_rank) fields.add("node_rank", *failed.node_rank);
  if (!failed.host.empty()) fields.add("host", failed.host);
  return {"failed", std::move(fields)};
}
std::pair<const char*, JsonValue> to_message(const Hurry& hurry) {
  return {"hurry", JsonValue::object({{"attempt", hurry.attempt}})};
}
std::pair<const char*, JsonValue> to_message(const Ended& ended) {
  return {"ended", JsonValue::object({{"attempt", ended.attempt},
                                      {"failure", to_value(ended.failure)},
                                      {"ranks", ended.ranks},
                                      {"roll_call", ended.roll_call},
                                      {"no_restart", ended.no_restart},
                                      {"asked_by", ended.asked_by},
                                      {"finished", ended.finished},
                                      {"step", ended.step},
                                      {"earlier_line", ended.earlier.line},
                                      {"earlier_block", ended.earlier.block},
                                      {"earlier_error", ended.earlier.json},
                                      {"earlier_at", ended.earlier.at},
                                      {"earlier_may_be_caught", ended.earlier.may_be_caught}})};
}
std::pair<const char*, JsonValue> to_message(const Signs& signs) {
  std::vector<std::int64_t> unmatched;
  for (const Clock::duration time : signs.of.unmatched) unmatched.push_back(to_ns(time));
  JsonValue silent;
  if (signs.of.silent) silent = JsonValue(to_ns(*signs.of.silent));
  return {"signs", JsonValue::object({{"attempt", signs.attempt},
                                      {"silent", silent},
                                      {"unmatched", unmatched},
                                      {"excuses_steps", signs.of.excuses_steps}})};
}
std::pair<const char*, JsonValue> to_message(const Finished& finished) {
  return {"finished", JsonValue::object({{"attempt", finished.attempt}, {"rank", finished.rank}})};
}
std::pair<const char*, JsonValue> to_message(const Signalled& signalled) {
  return {"signalled", JsonValue::object({{"attempt", signalled.attempt}, {"signal", signalled.signal}})};
}
std::pair<const char*, JsonValue> to_message(const Answer& answer) {
  return {"answer", JsonValue::object({{"id", answer.id}, {"text", answer.text}})};
}
std::pair<const char*, JsonValue> to_message(const Ask& ask) {
  return {"ask", JsonValue::object({{"id", ask.id}, {"request", ask.request}, {"sender", ask.sender}})};
}
std::pair<const char*, JsonValue> to_message(const Echo& echo) {
  return {"echo", JsonValue::object({{"sent", echo.sent}, {"received", echo.received}})};
}
std::pair<const char*, JsonValue> to_message(const Note& note) {
  return {"note", JsonValue::object(
                      {{"line", note.line}, {"missing", note.missing}, {"come_again", note.come_again}})};
}
std::pair<const char*, JsonValue> to_message(const Place& place) {
  return {"place", JsonValue::object({{"node_rank", place.node_rank}})};
}
std::pair<const char*, JsonValue> to_message(const Places& places) {
  return {"places", JsonValue::object({{"run_id", places.run_id},
                                       {"nodes", to_value(places.nodes)},
                                       {"attempt", places.attempt},
                                       {"restarts", places.restarts},
                                       {"restart_ages", places.restart_ages},
                                       {"first_at", places.first_at}})};
}
std::pair<const char*, JsonValue> to_message(const Start& start) {
  return {"start", JsonValue::object({{"attempt", start.attempt},
                                      {"ranks", to_value(start.ranks)},
                                      {"master", to_value(start.master)},
                                      {"store", to_value(start.store)}})};
}
std::pair<const char*, JsonValue> to_message(const Stop& stop) {
  return {"stop", JsonValue::object({{"why", stop.why},
                                     {"exit_code", stop.exit_code},
                                     {"call_roll", stop.call_roll},
                                     {"signal", stop.signal},
                                     {"cause", stop.cause},
                                     {"rank", stop.rank}})};
}
std::pair<const char*, JsonValue> to_message(const Again& again) {
  return {"again", JsonValue::object({{"attempt", again.attempt},
                                      {"delay", again.delay},
                                      {"restarts", again.restarts},
                                      {"failure", to_value(again.failure)}})};
}
std::pair<const char*, JsonValue> to_message(const Over& over) {
  return {"over", JsonValue::object(
                      {{"failure", to_value(over.failure)}, {"node", over.node}, {"gave_up", over.gave_up}})};
}

template <typename Message>
std::string encode_any(const Message& message) {
  const auto [name, value] = std::visit([](const auto& one) { return to_message(one); }, message);
  return store_protocol::encode(store_protocol::Set{.id = 0, .key = name, .value = to_json(value)});
}

}  // namespace

std::string encode(const FromNode& message) { return encode_any(message); }
std::string encode(const FromFirst& message) { return encode_any(message); }

std::string places_text(const Placed& placed) {
  JsonValue json = to_message(Places{placed.run_id, placed.nodes, placed.attempt, placed.restarts}).second;
  json.add("node_rank", placed.node_rank);
  return to_json(json) + "\n";
}

}  // namespace fleetrun::launch
