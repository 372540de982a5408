#include "launch/nodes/node_messages.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::node_messages_test {
namespace {

store_protocol::Set frame_of(const std::string& bytes) {
  const auto message = store_protocol::decode(std::string_view(bytes).substr(store_protocol::kLengthBytes));
  REQUIRE(message);
  return std::get<store_protocol::Set>(*message);
}

template <typename Message>
Message through_wire_to_first(const Message& message) {
  const auto read = decode_from_node(frame_of(encode(FromNode(message))));
  REQUIRE(read);
  return std::get<Message>(*read);
}

template <typename Message>
Message through_wire_to_node(const Message& message) {
  const auto read = decode_from_first(frame_of(encode(FromFirst(message))));
  REQUIRE(read);
  return std::get<Message>(*read);
}

const NodeFailure kFailure = {.at = 1234567890123456789,
                              .error = 17,
                              .cause = "exited",
                              .line = "rank 5 exited with code 3",
                              .block = "two\nlines \"quoted\"\n",
                              .exit_code = 3,
                              .signal = 15,
                              .rank = 5};

TEST_CASE("what a node says arrives as it was sent") {
  const Join join = through_wire_to_first(Join{.address = "10.0.0.1",
                                               .host = "one",
                                               .logs = "/a/log",
                                               .node_rank = 3,
                                               .device_ids = {{0}, {1, 2}},
                                               .terms = {{"--timeout", ""}, {"the program", "a b"}},
                                               .coordinates = true,
                                               .seen = {AttemptSeen{2, 4, 1}, {{3, 3, 1}}}});
  CHECK(join.coordinates);
  CHECK(join.seen == AttemptsSeen{AttemptSeen{2, 4, 1}, {{3, 3, 1}}});
  CHECK(join.logs == "/a/log");
  CHECK(join.node_rank == 3);
  CHECK(join.device_ids == std::vector<std::vector<int>>{{0}, {1, 2}});
  CHECK(join.terms == Terms{{"--timeout", ""}, {"the program", "a b"}});
  CHECK(through_wire_to_first(Beat{-5}).sent == -5);
  const Ready ready = through_wire_to_first(Ready{.attempt = 2,
                                                  .ports = {1, 65535},
                                                  .master_port = 7,
                                                  .store = {{"10.0.0.1", 8}, {"10.1.0.1"}},
                                                  .reaches = {"10.2.0.1"}});
  CHECK(ready.attempt == 2);
  CHECK(ready.ports == std::vector<std::uint16_t>{1, 65535});
  CHECK(ready.store.endpoint == Endpoint{"10.0.0.1", 8});
  CHECK(ready.store.also_at == std::vector<std::string>{"10.1.0.1"});
  CHECK(ready.reaches == std::vector<std::string>{"10.2.0.1"});
  CHECK(through_wire_to_first(Failed{1, kFailure}).failure.at == kFailure.at);
  const Ended ended =
      through_wire_to_first(Ended{1, kFailure, JsonValue::list({JsonValue::object({{"rank", 5}})})});
  CHECK(ended.failure->block == kFailure.block);
  CHECK(ended.failure->signal == kFailure.signal);
  CHECK(to_json(ended.ranks) == R"([{"rank": 5}])");
  CHECK(
      through_wire_to_first(Ended{.ranks = JsonValue::list({}), .roll_call = {"rank 1 sleeps"}}).roll_call ==
      std::vector<std::string>{"rank 1 sleeps"});
  Ended with_words = {.ranks = JsonValue::list({})};
  with_words.earlier = {"line", "block\n", JsonValue::object({{"rank", 1}}), -5, true};
  const EarlierWords words = through_wire_to_first(with_words).earlier;
  CHECK(words.line == "line");
  CHECK(words.at == -5);
  CHECK(words.may_be_caught);
  const Answer answer = through_wire_to_first(Answer{7, R"({"ranks": ["\u001b[0m"]})"});
  CHECK(answer.id == 7);
  CHECK(answer.text == R"({"ranks": ["\u001b[0m"]})");
}

TEST_CASE("what the first node says arrives as it was sent") {
  CHECK(through_wire_to_node(Echo{1, 2}).received == 2);
  CHECK(through_wire_to_node(Note{"waiting", "node 1"}).line == "waiting");
  CHECK(through_wire_to_node(Note{"waiting", "node 1"}).missing == "node 1");
  CHECK_FALSE(through_wire_to_node(Note{"waiting", "node 1"}).come_again);
  CHECK(through_wire_to_node(Note{"waiting", "", true}).come_again);
  const Places places = through_wire_to_node(
      Places{"run", {{"10.0.0.1", "one", "/a", {{0}}}, {"10.0.0.2", "two", "/b c", {{0}, {1}}}}});
  CHECK(places.nodes[1].logs == "/b c");
  CHECK(places.nodes[1].device_ids.size() == 2);
  CHECK(places.restart_ages.empty());
  const std::vector<std::int64_t> ages = {3600000000001, 0};
  const Places later = through_wire_to_node(Places{"run", {}, 4, 3, ages, {"10.0.0.1", "10.1.0.1"}});
  CHECK(later.restart_ages == ages);
  CHECK(later.first_at == std::vector<std::string>{"10.0.0.1", "10.1.0.1"});
  CHECK(through_wire_to_node(Place{1}).node_rank == 1);
  const Start start = through_wire_to_node(Start{1, {{"10.0.0.1", 1}, {"10.0.0.2", 2}}, {"10.0.0.1", 3}, {}});
  CHECK(start.ranks[1] == Endpoint{"10.0.0.2", 2});
  CHECK(through_wire_to_node(Stop{"why", 3}).exit_code == 3);
  CHECK(through_wire_to_node(Stop{"why", 3, true}).call_roll);
  CHECK(through_wire_to_node(Stop{"why", 130, false, 2}).signal == 2);
  CHECK_FALSE(through_wire_to_node(Stop{"why", 3}).rank);
  const Stop of_rank = through_wire_to_node(Stop{"why", 3, false, 0, "exited", 7});
  CHECK(of_rank.cause == "exited");
  CHECK(of_rank.rank == 7);
  CHECK(through_wire_to_node(Again{1, 5}).delay == 5);
  CHECK_FALSE(through_wire_to_node(Again{1, 5}).failure);
  CHECK(through_wire_to_node(Again{1, 5, 1, kFailure}).failure->line == kFailure.line);
  const Ask ask = through_wire_to_node(Ask{7, R"({"do": "ps"})", "process 3 on node 0"});
  CHECK(ask.request == R"({"do": "ps"})");
  CHECK(ask.sender == "process 3 on node 0");
  CHECK_FALSE(through_wire_to_node(Over{}).failure);
  CHECK(through_wire_to_node(Over{kFailure, 1}).failure->rank == 5);
}

TEST_CASE("what is said both ways arrives as it was sent") {
  const Signs signs = {
      2, {.silent = std::chrono::seconds(3), .unmatched = {Clock::duration::max()}, .excuses_steps = true}};
  for (const Signs& read : {through_wire_to_first(signs), through_wire_to_node(signs)}) {
    CHECK(read.attempt == 2);
    CHECK(read.of.silent == signs.of.silent);
    CHECK(read.of.unmatched == signs.of.unmatched);
    CHECK(read.of.excuses_steps);
  }
  CHECK_FALSE(through_wire_to_node(Signs{}).of.silent);
  CHECK(through_wire_to_first(Finished{0, 7}).rank == 7);
  CHECK(through_wire_to_node(Finished{0, 7}).rank == 7);
  CHECK(through_wire_to_node(Signalled{1, 20}).signal == 20);
  CHECK(through_wire_to_first(Hurry{4}).attempt == 4);
}

TEST_CASE("a first node of an earlier version can say why a node does not fit") {
  const auto note = decode_from_first({.id = 0, .key = "note", .value = R"({"line": "waiting for node 1"})"});
  REQUIRE(note);
  CHECK(std::get<Note>(*note).missing.empty());
  const auto over = decode_from_first(
      {.id = 0,
       .key = "over",
       .value = R"({"failure": {"at": 0, "error": 0, "cause": "nodes", "line": "the nodes do not agree",
                                "block": "", "exit_code": 76}, "gave_up": false})"});
  REQUIRE(over);
  CHECK(std::get<Over>(*over).failure->line == "the nodes do not agree");
  CHECK(std::get<Over>(*over).failure->signal == 0);
}

TEST_CASE(
    "places with more restarts than there were or than fit, or with one in the future, are no message") {
  const auto read = [](int restarts, const std::vector<std::int64_t>& ages) {
    return decode_from_first(frame_of(encode(FromFirst(Places{"run", {}, 4, restarts, ages}))));
  };
  CHECK(read(2, {1, 0}));
  CHECK_FALSE(read(1, {1, 0}));
  CHECK_FALSE(read(2, {1, -1}));
  CHECK(read(5000, std::vector<std::int64_t>(kMostRestartAges)));
  CHECK_FALSE(read(5000, std::vector<std::int64_t>(kMostRestartAges + 1)));
  CHECK_FALSE(decode_from_first(
      {.id = 0,
       .key = "places",
       .value = R"({"run_id": "r", "nodes": [], "attempt": 0, "restarts": 1, "restart_ages": ["now"]})"}));
}

TEST_CASE("the file of places of an earlier version has no ages of restarts") {
  const auto placed = parse_places(
      R"({"run_id": "r", "attempt": 1, "restarts": 1, "node_rank": 0,
          "nodes": [{"address": "a", "host": "b", "logs": "c", "device_ids": [[0]]}]})");
  REQUIRE(placed);
  CHECK(placed->restarts == 1);
}

TEST_CASE("a message with a field that is missing, of another kind or out of range is none") {
  for (const char* value : {"", "{}", "[]", "{\"sent\": \"now\"}", "{\"sent\": 1e99}", "{\"sent\": 1"}) {
    CAPTURE(value);
    CHECK_FALSE(decode_from_node({.id = 0, .key = "beat", .value = value}));
    CHECK_FALSE(decode_from_first({.id = 0, .key = "echo", .value = value}));
    CHECK_FALSE(decode_from_node({.id = 0, .key = "answer", .value = value}));
    CHECK_FALSE(decode_from_first({.id = 0, .key = "ask", .value = value}));
  }
  CHECK_FALSE(decode_from_node({.id = 0, .key = "hello", .value = "{\"sent\": 1}"}));
  CHECK_FALSE(decode_from_node(
      {.id = 0,
       .key = "ready",
       .value = R"({"attempt": 0, "ports": [70000], "master_port": 1, "store": {"host": "", "port": 0}})"}));
  CHECK_FALSE(decode_from_node(
      {.id = 0, .key = "join", .value = R"({"address": "a", "host": "b", "device_ids": [], "terms": []})"}));
  CHECK_FALSE(decode_from_first(
      {.id = 0,
       .key = "places",
       .value = R"({"run_id": "r", "nodes": [{"host": "b", "logs": "c", "device_ids": [[0]]}]})"}));
}

}  // namespace
}  // namespace fleetrun::launch::node_messages_test
