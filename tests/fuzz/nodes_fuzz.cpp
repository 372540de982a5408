// Tries the messages between nodes and the Coordinator with what no node should say, for some time:
//   nodes_fuzz [--seconds N] [--seed N]
// Ends by SIGABRT at the first thing that is not right. With clang's libFuzzer (scripts/soak fuzz) it has no main of its own.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json/json_reader.h"
#include "fuzz/mutate.h"
#include "launch/nodes/coordinator.h"
#include "launch/nodes/node_messages.h"
#include "launch/nodes/node_questions.h"
#include "launch/nodes/places.h"
#include "launch/serve/figures_json.h"
#include "launch/serve/merge_answers.h"
#include "launch/serve/remote_log.h"

namespace fleetrun::launch::fuzz {
namespace {

namespace wire = store_protocol;

constexpr int kNodes = 3;
constexpr PeerId kPeers = 5;

void must(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "broken: {}\n", what);
  std::abort();
}

// Bytes as frames from changing peers, between them losses and times. Every second byte before a frame says which.
class Conversation {
 public:
  void run(std::string_view bytes) {
    while (bytes.size() > wire::kLengthBytes + 1) {
      const auto order = static_cast<std::uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      now_ += std::chrono::milliseconds(10 * (order / 16));
      const PeerId peer = 1 + order % kPeers;
      questions_.woke(now_);
      if (order % 16 == 15) questions_.lost(peer);
      if (order % 16 == 15) take(coordinator_.lost(peer, "it left", now_, now_));
      if (const auto time = coordinator_.wake_at(); time && *time <= now_) take(coordinator_.woke(now_));
      const std::size_t length =
          std::min<std::size_t>(wire::decode_length(bytes.data()), bytes.size() - wire::kLengthBytes);
      hear(peer, bytes.substr(wire::kLengthBytes, length));
      bytes.remove_prefix(wire::kLengthBytes + length);
    }
    coordinator_.ranks();
    questions_.woke(now_ + NodeQuestions::kPatience);
    must(asked_ == answered_, "a question has no answer, or two");
    must(!questions_.wake_at(), "somebody still waits for an answer");
  }

 private:
  void hear(PeerId peer, std::string_view frame) {
    const auto message = wire::decode(frame);
    const auto* set = message ? std::get_if<wire::Set>(&*message) : nullptr;
    if (set == nullptr) return;
    if (const auto heard = decode_from_first(*set)) obey(*heard);
    const auto said = decode_from_node(*set);
    if (!said) return;
    if (const auto* answer = std::get_if<Answer>(&*said)) use(peer, *answer);
    take(coordinator_.on(peer, *said, now_));
  }

  // What other nodes are asked, they answer as they like.
  void obey(const FromFirst& message) {
    const auto* places = std::get_if<Places>(&message);
    if (places != nullptr && !places->nodes.empty()) placed_ = {0, places->run_id, places->nodes};
    const auto* ask = std::get_if<Ask>(&message);
    if (ask == nullptr) return;
    ++asked_;
    const auto count = [this](const std::optional<std::string>&) { ++answered_; };
    questions_.ask(1 + static_cast<PeerId>(ask->id) % kPeers, *ask, count, now_);
  }

  void use(PeerId peer, const Answer& answer) {
    questions_.heard(peer, answer);
    const JsonValue text = read_json(answer.text).root;
    read_figures(text);
    const LogAnswer pieces = read_log_answer(text, 1);
    if (pieces.pieces != nullptr) log_.take(pieces.pieces->items.front(), pieces.newest, now_);
    to_json(merge_ps(placed_, {{0, text}, {1, text}}));
    to_json(merge_signal(placed_, {{0, "0"}}, {{0, text}}));
  }

  void take(const Coordinator::Actions& actions) {
    must(actions.size() <= kNodes + 2, "one message has many answers");
    for (const auto& action : actions) {
      const auto* tell = std::get_if<Coordinator::Tell>(&action);
      if (tell == nullptr) continue;
      for (const PeerId to : tell->to) must(to >= 1 && to <= kPeers, "somebody unknown gets an answer");
      if (std::holds_alternative<Start>(tell->message)) must(!over_, "an attempt starts after the end");
    }
    over_ = over_ || coordinator_.over();
    must(over_ == coordinator_.over(), "a run that was over goes on");
  }

  TimePoint now_ = TimePoint() + std::chrono::hours(1);
  Coordinator coordinator_{{.nodes = kNodes, .run_id = "run", .restart = {.most = 2}}, now_};
  bool over_ = false;
  std::size_t asked_ = 0, answered_ = 0;
  NodeQuestions questions_{[](PeerId, const Ask&) {}};
  Placed placed_ = {0, "run", {{"10.0.0.1", "host", "/log", {{0}}}}};
  RemoteLog log_{{.rank = 0, .errors = false, .attempt = 0, .since = {}}, LogText([] { return ""; })};
};

// A run of three nodes, as orders.
std::vector<std::string> conversations() {
  const auto order = [](int peer, const FromNode& message) {
    return std::string(1, static_cast<char>((peer + 4) % 5)) + encode(message);
  };
  const Join join = {
      .address = "10.0.0.1", .host = "host", .node_rank = {}, .device_ids = {{0}}, .terms = {{"a", "b"}}};
  const NodeFailure failure = {.at = 5,
                               .error = 1,
                               .cause = "exited",
                               .line = "rank 1",
                               .block = "rank 1\n",
                               .exit_code = 3,
                               .rank = 1};
  std::string joins, readies, ends, fails;
  for (int peer = 1; peer <= kNodes; ++peer) {
    joins += order(peer, join);
    readies += order(
        peer, Ready{.attempt = 0, .ports = {1}, .master_port = 2, .store = {{"h", 3}}, .reaches = {"h"}});
    ends += order(peer, Ended{0, {}, JsonValue::list({})});
    fails += order(peer, Failed{0, failure}) + order(peer, Ended{0, failure, JsonValue::list({})});
  }
  const std::string lively = order(1, Signs{0, {.silent = std::chrono::seconds(1), .unmatched = {{}}}}) +
                             order(2, Finished{0, 1}) + order(3, Signalled{0, 20});
  const auto from_first = [](const FromFirst& message) { return std::string(1, '\0') + encode(message); };
  const Places places = {"run", {{"10.0.0.1", "one", "/a", {{0}}}, {"10.0.0.2", "two", "/b", {{0}, {1}}}}};
  const std::string log =
      R"({"attempt": 0, "logs": [{"attempt": 0, "from": 0, "bytes": 3, "size": 9, "text": "a\nb"}]})";
  const std::string asks = from_first(places) + from_first(Ask{1, R"({"do": "ps"})", "somebody"}) +
                           from_first(Ask{2, R"({"do": "log"})", "somebody"}) +
                           order(2, Answer{1, R"({"ranks": [{"rank": 1}], "spared": [2]})"}) +
                           order(3, Answer{2, log}) +
                           order(2, Answer{3, to_json(figures_json({RankMetrics{}}))});
  return {asks,
          joins + asks,
          joins,
          joins + readies,
          joins + readies + lively + ends,
          joins + readies + fails + readies,
          order(2, Beat{7})};
}

}  // namespace

void try_nodes(std::string_view bytes) { Conversation().run(bytes); }

}  // namespace fleetrun::launch::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fleetrun::launch::fuzz::try_nodes({reinterpret_cast<const char*>(data), size});
  return 0;
}

#ifndef FLEETRUN_LIBFUZZER
int main(int argc, char** argv) {
  double seconds = 600;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--seconds") seconds = std::atof(argv[i + 1]);
    if (std::string_view(argv[i]) == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  fleetrun::fuzz::Mutator mutator(seed, fleetrun::launch::fuzz::conversations());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t count = 0;
  for (; std::chrono::steady_clock::now() < end; ++count) fleetrun::launch::fuzz::try_nodes(mutator.next());
  fmt::print("{} conversations between nodes\n", count);
  return 0;
}
#endif
