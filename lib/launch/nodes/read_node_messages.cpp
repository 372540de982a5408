// The other direction of node_messages.cpp: from JSON to messages.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/json/json_reader.h"
#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

// A field that is missing or of another kind makes the whole message bad.

struct Fields {
  const JsonValue& object;
  bool good = true;

  const JsonValue* find(const char* key, Kind kind) {
    const JsonValue* const value = object.find(key, kind);
    good = good && value != nullptr;
    return value;
  }
  std::string text(const char* key) {
    const JsonValue* const value = find(key, Kind::text);
    return value == nullptr ? "" : value->text;
  }
  template <typename Number>
  Number number(const char* key) {
    const JsonValue* const value = find(key, Kind::integer);
    if (value == nullptr) return 0;
    good = good && std::in_range<Number>(value->integer);
    return static_cast<Number>(value->integer);
  }
  bool yes(const char* key) {
    const JsonValue* const value = find(key, Kind::boolean);
    return value != nullptr && value->boolean;
  }
  std::string text_if_any(const char* key) { return object.find(key) == nullptr ? "" : text(key); }
  bool yes_if_any(const char* key) { return object.find(key) != nullptr && yes(key); }
  template <typename Number = int>
  std::optional<Number> maybe_number(const char* key) {
    const JsonMember* const member = object.find(key);
    if (member == nullptr || member->value.is(Kind::null)) return std::nullopt;
    return number<Number>(key);
  }
};

template <typename Number>
std::vector<Number> numbers(const JsonValue& list, bool& good) {
  std::vector<Number> values;
  for (const JsonValue& item : list.items) {
    good = good && item.is(Kind::integer) && std::in_range<Number>(item.integer);
    values.push_back(static_cast<Number>(item.integer));
  }
  return values;
}

std::vector<std::string> texts(Fields& fields, const char* key) {
  std::vector<std::string> values;
  const JsonValue* const list = fields.find(key, Kind::list);
  if (list == nullptr) return values;
  for (const JsonValue& item : list->items) {
    fields.good = fields.good && item.is(Kind::text);
    values.push_back(item.text);
  }
  return values;
}

std::vector<std::vector<int>> device_ids(Fields& fields) {
  std::vector<std::vector<int>> ranks;
  const JsonValue* const list = fields.find("device_ids", Kind::list);
  if (list == nullptr) return ranks;
  for (const JsonValue& item : list->items) {
    fields.good = fields.good && item.is(Kind::list);
    ranks.push_back(numbers<int>(item, fields.good));
  }
  return ranks;
}

Endpoint endpoint(Fields fields, bool& good) {
  Endpoint endpoint = {fields.text("host"), fields.number<std::uint16_t>("port")};
  good = good && fields.good;
  return endpoint;
}

Endpoint endpoint(Fields& fields, const char* key) {
  const JsonValue* const value = fields.find(key, Kind::object);
  return value == nullptr ? Endpoint() : endpoint({*value}, fields.good);
}

StorePlace store_place(Fields& fields) {
  const JsonValue* const value = fields.find("store", Kind::object);
  if (value == nullptr) return {};
  Fields parts = {*value};
  StorePlace store = {.endpoint = endpoint({*value}, fields.good), .also_at = texts(parts, "also_at")};
  fields.good = fields.good && parts.good;
  return store;
}

Terms terms(Fields& fields) {
  Terms terms;
  const JsonValue* const list = fields.find("terms", Kind::list);
  if (list == nullptr) return terms;
  for (const JsonValue& item : list->items) {
    const bool pair = item.is(Kind::list) && item.items.size() == 2;
    fields.good = fields.good && pair;
    if (pair) terms.emplace_back(item.items[0].text, item.items[1].text);
  }
  return terms;
}

std::optional<NodeFailure> failure(Fields& outer) {
  const JsonMember* const member = outer.object.find("failure");
  if (member == nullptr || !member->value.is(Kind::object)) return std::nullopt;
  Fields fields = {member->value};
  NodeFailure failure = {.at = fields.number<std::int64_t>("at"),
                         .error = fields.number<std::int64_t>("error"),
                         .cause = fields.text("cause"),
                         .line = fields.text("line"),
                         .block = fields.text("block"),
                         .exit_code = fields.number<int>("exit_code"),
                         .signal = fields.maybe_number("signal").value_or(0),
                         .rank = fields.maybe_number("rank")};
  if (const JsonValue* const evidence = fields.object.find("evidence", Kind::object))
    failure.evidence = *evidence;
  outer.good = outer.good && fields.good;
  return failure;
}

AttemptSeen attempt_seen(Fields fields, bool& good) {
  const AttemptSeen seen = {.attempt = fields.number<int>("attempt"),
                            .nodes = fields.number<int>("nodes"),
                            .node_rank = fields.number<int>("node_rank")};
  good = good && fields.good && seen.attempt >= 0 && seen.node_rank >= 0 && seen.node_rank < seen.nodes;
  return seen;
}

AttemptsSeen attempts_seen(Fields& outer) {
  AttemptsSeen seen;
  const JsonValue* const value = outer.find("seen", Kind::object);
  if (value == nullptr) return seen;
  Fields fields = {*value};
  if (const JsonValue* const started = value->find("started", Kind::object))
    seen.started = attempt_seen({*started}, fields.good);
  if (const JsonValue* const list = fields.find("ready_for", Kind::list))
    for (const JsonValue& item : list->items) seen.ready_for.push_back(attempt_seen({item}, fields.good));
  outer.good = outer.good && fields.good;
  return seen;
}

std::optional<Join> read_join(Fields fields) {
  Join join = {.address = fields.text("address"),
               .host = fields.text("host"),
               .logs = fields.text("logs"),
               .node_rank = fields.maybe_number("node_rank"),
               .device_ids = device_ids(fields),
               .terms = terms(fields),
               .coordinates = fields.yes("coordinates"),
               .seen = attempts_seen(fields)};
  return fields.good && !join.device_ids.empty() ? std::optional(join) : std::nullopt;
}

std::optional<Ready> read_ready(Fields fields) {
  Ready ready = {.attempt = fields.number<int>("attempt"),
                 .ports = {},
                 .master_port = fields.number<std::uint16_t>("master_port"),
                 .store = store_place(fields),
                 .reaches = texts(fields, "reaches")};
  if (const JsonValue* const ports = fields.find("ports", Kind::list))
    ready.ports = numbers<std::uint16_t>(*ports, fields.good);
  return fields.good ? std::optional(ready) : std::nullopt;
}

std::optional<Failed> read_failed(Fields fields) {
  const int attempt = fields.number<int>("attempt");
  const auto what = failure(fields);
  if (!fields.good || !what) return std::nullopt;
  Failed failed = {attempt, *what};
  failed.node_rank = fields.maybe_number<int>("node_rank");
  if (const JsonValue* const host = fields.object.find("host", Kind::text)) failed.host = host->text;
  return failed;
}

std::optional<Ended> read_ended(Fields fields) {
  Ended ended = {
      .attempt = fields.number<int>("attempt"), .failure = failure(fields), .ranks = {}, .roll_call = {}};
  ended.step = fields.maybe_number<std::int64_t>("step");
  if (fields.object.find("no_restart") != nullptr) ended.no_restart = fields.yes("no_restart");
  for (const auto& [name, text] :
       {std::pair("earlier_line", &ended.earlier.line), std::pair("earlier_block", &ended.earlier.block)})
    if (const JsonValue* const value = fields.object.find(name, Kind::text)) *text = value->text;
  if (const JsonValue* const error = fields.object.find("earlier_error", Kind::object))
    ended.earlier.json = *error;
  ended.earlier.at = fields.maybe_number<std::int64_t>("earlier_at").value_or(0);
  ended.earlier.may_be_caught = fields.yes_if_any("earlier_may_be_caught");
  ended.asked_by = fields.maybe_number<int>("asked_by").value_or(0);
  if (fields.object.find("finished") != nullptr) ended.finished = fields.yes("finished");
  if (const JsonValue* const ranks = fields.find("ranks", Kind::list)) ended.ranks = *ranks;
  ended.roll_call = texts(fields, "roll_call");
  return fields.good ? std::optional(ended) : std::nullopt;
}

std::optional<Signs> read_signs(Fields fields) {
  Signs signs = {.attempt = fields.number<int>("attempt"),
                 .of = {.excuses_steps = fields.yes("excuses_steps")}};
  if (const JsonMember* const silent = fields.object.find("silent");
      silent != nullptr && !silent->value.is(Kind::null))
    signs.of.silent = std::chrono::nanoseconds(fields.number<std::int64_t>("silent"));
  if (const JsonValue* const times = fields.find("unmatched", Kind::list))
    for (const std::int64_t time : numbers<std::int64_t>(*times, fields.good))
      signs.of.unmatched.emplace_back(std::chrono::nanoseconds(time));
  return fields.good ? std::optional(signs) : std::nullopt;
}

// The files of earlier versions have none.
std::vector<std::int64_t> restart_ages(Fields& fields, int restarts) {
  if (fields.object.find("restart_ages") == nullptr) return {};
  const JsonValue* const list = fields.find("restart_ages", Kind::list);
  if (list == nullptr) return {};
  fields.good = fields.good && list->items.size() <= kMostRestartAges &&
                std::cmp_less_equal(list->items.size(), restarts);
  if (!fields.good) return {};
  std::vector<std::int64_t> ages = numbers<std::int64_t>(*list, fields.good);
  fields.good = fields.good && std::ranges::all_of(ages, [](std::int64_t age) { return age >= 0; });
  return ages;
}

std::optional<Places> read_places(Fields fields) {
  Places places = {.run_id = fields.text("run_id"),
                   .nodes = {},
                   .attempt = fields.number<int>("attempt"),
                   .restarts = fields.number<int>("restarts")};
  places.restart_ages = restart_ages(fields, places.restarts);
  if (fields.object.find("first_at") != nullptr) places.first_at = texts(fields, "first_at");
  const JsonValue* const nodes = fields.find("nodes", Kind::list);
  if (nodes == nullptr) return std::nullopt;
  for (const JsonValue& item : nodes->items) {
    Fields node = {item};
    places.nodes.push_back({node.text("address"), node.text("host"), node.text("logs"), device_ids(node)});
    fields.good = fields.good && node.good;
  }
  return fields.good ? std::optional(places) : std::nullopt;
}

std::optional<Start> read_start(Fields fields) {
  Start start = {.attempt = fields.number<int>("attempt"),
                 .ranks = {},
                 .master = endpoint(fields, "master"),
                 .store = endpoint(fields, "store")};
  if (const JsonValue* const ranks = fields.find("ranks", Kind::list))
    for (const JsonValue& item : ranks->items) start.ranks.push_back(endpoint({item}, fields.good));
  return fields.good ? std::optional(start) : std::nullopt;
}

template <typename Message, typename... Members>
std::optional<Message> if_good(const Fields& fields, Message message) {
  return fields.good ? std::optional(std::move(message)) : std::nullopt;
}

template <typename Variant, typename Message>
std::optional<Variant> widen(std::optional<Message> message) {
  if (!message) return std::nullopt;
  return Variant(std::move(*message));
}

// What nodes say to the first one, and it to the others.
template <typename Either>
std::optional<Either> read_either(const std::string& name, Fields fields) {
  if (name == "signs") return widen<Either>(read_signs(fields));
  const auto attempt = fields.number<int>("attempt");
  if (name == "hurry") return widen<Either>(if_good(fields, Hurry{attempt}));
  if (name == "finished") {
    const Finished finished = {attempt, fields.number<int>("rank")};
    return widen<Either>(if_good(fields, finished));
  }
  if (name != "signalled") return std::nullopt;
  const Signalled signalled = {attempt, fields.number<int>("signal")};
  return widen<Either>(if_good(fields, signalled));
}

}  // namespace

std::optional<FromNode> decode_from_node(const store_protocol::Set& frame) {
  const JsonDocument document = read_json(frame.value);
  if (!document.problems.empty()) return std::nullopt;
  Fields fields = {document.root};
  if (frame.key == "join") return widen<FromNode>(read_join(fields));
  if (frame.key == "ready") return widen<FromNode>(read_ready(fields));
  if (frame.key == "failed") return widen<FromNode>(read_failed(fields));
  if (frame.key == "ended") return widen<FromNode>(read_ended(fields));
  if (frame.key == "answer") {
    const Answer answer = {fields.number<std::int64_t>("id"), fields.text("text")};
    return widen<FromNode>(if_good(fields, answer));
  }
  if (frame.key != "beat") return read_either<FromNode>(frame.key, fields);
  const Beat beat = {fields.number<std::int64_t>("sent")};
  return widen<FromNode>(if_good(fields, beat));
}

std::optional<FromFirst> decode_from_first(const store_protocol::Set& frame) {
  const JsonDocument document = read_json(frame.value);
  if (!document.problems.empty()) return std::nullopt;
  Fields fields = {document.root};
  if (frame.key == "place") {
    const Place place = {fields.number<int>("node_rank")};
    return widen<FromFirst>(if_good(fields, place));
  }
  if (frame.key == "places") return widen<FromFirst>(read_places(fields));
  if (frame.key == "start") return widen<FromFirst>(read_start(fields));
  if (frame.key == "echo") {
    const Echo echo = {fields.number<std::int64_t>("sent"), fields.number<std::int64_t>("received")};
    return widen<FromFirst>(if_good(fields, echo));
  }
  if (frame.key == "note") {
    const Note note = {fields.text("line"), fields.text_if_any("missing"), fields.yes_if_any("come_again")};
    return widen<FromFirst>(if_good(fields, note));
  }
  if (frame.key == "stop") {
    const Stop stop = {fields.text("why"),      fields.number<int>("exit_code"),
                       fields.yes("call_roll"), fields.number<int>("signal"),
                       fields.text("cause"),    fields.maybe_number("rank")};
    return widen<FromFirst>(if_good(fields, stop));
  }
  if (frame.key == "again") {
    const Again again = {fields.number<int>("attempt"), fields.number<std::int64_t>("delay"),
                         fields.number<int>("restarts"), failure(fields)};
    return widen<FromFirst>(if_good(fields, again));
  }
  if (frame.key == "ask") {
    const Ask ask = {fields.number<std::int64_t>("id"), fields.text("request"), fields.text("sender")};
    return widen<FromFirst>(if_good(fields, ask));
  }
  if (frame.key != "over") return read_either<FromFirst>(frame.key, fields);
  const Over over = {failure(fields), fields.maybe_number("node"), fields.yes("gave_up")};
  return widen<FromFirst>(if_good(fields, over));
}

std::optional<Placed> parse_places(const std::string& text) {
  const JsonDocument document = read_json(text);
  if (!document.problems.empty()) return std::nullopt;
  Fields fields = {document.root};
  const int node_rank = fields.number<int>("node_rank");
  const auto places = read_places(fields);
  if (!places || node_rank < 0 || std::cmp_greater_equal(node_rank, places->nodes.size()))
    return std::nullopt;
  return Placed{node_rank, places->run_id, places->nodes, places->attempt, places->restarts};
}

}  // namespace fleetrun::launch
