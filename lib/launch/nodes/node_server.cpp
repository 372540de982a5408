#include "launch/nodes/node_server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "launch/loop/listen_on.h"
#include "launch/loop/read_frames.h"
#include "launch/nodes/munge.h"

namespace fleetrun::launch {
namespace {

namespace wire = store_protocol;

constexpr auto kFinishPatience = std::chrono::seconds(2);
constexpr std::size_t kMostStrangers = 64;

}  // namespace

NodeServer::NodeServer(EventLoop& loop, UniqueFd listener, const NodeKey& key, CoordinatorOptions options)
    : loop_(loop),
      key_(key),
      kind_(options.takes_over ? kSuccessor : kFirstNode),
      rival_(std::string(kRival) + options.rival_mark),
      coordinator_(std::move(options), Clock::now()),
      questions_([this](PeerId id, const Ask& ask) { peers_.send(id, encode(ask)); }),
      looked_(Clock::now()),
      wake_(loop),
      look_(loop),
      peers_(loop, std::move(listener),
             {.strangers = kMostStrangers, .input = wire::kLengthBytes + wire::kMaxFrame},
             {.welcome =
                  [this](PeerId id, int fd) {
                    nodes_[id].nonce = make_nonce();
                    return welcome_peer(fd);
                  },
              .on_input =
                  [this](const Peer& peer, std::string input) {
                    nodes_[peer.id].last_heard = Clock::now();  // also amid a long message
                    return read_frames(peers_, peer.id, std::move(input),
                                       [&](const wire::Message& message) { on_message(peer.id, message); });
                  },
              .on_drop = [this](const Peer& peer, const std::string& why) { on_drop(peer, why); }}) {
  wake_later();
  look_.call_at(Clock::now() + kNodeBeat, [this] { look_for_silence(); });
}

NodeServer::~NodeServer() = default;

void NodeServer::on_message(PeerId id, const wire::Message& message) {
  Node& node = nodes_[id];
  if (!node.proven) return shake_hands(id, node, message);
  node.last_heard = Clock::now();
  const auto* frame = std::get_if<wire::Set>(&message);
  const auto said = frame == nullptr ? std::nullopt : decode_from_node(*frame);
  if (!said) return peers_.drop(id, "it sent a message that no node may send");
  if (const auto* answer = std::get_if<Answer>(&*said)) return questions_.heard(id, *answer);
  perform(coordinator_.on(id, *said, node.last_heard));
}

void NodeServer::ask(const Placed& placed, int node, Ask ask, NodeQuestions::Done done,
                     Clock::duration patience) {
  const auto peer = coordinator_.peer_of(placed, node);
  if (!peer || !peers_.listens_to(*peer)) return done(std::nullopt);
  questions_.ask(*peer, std::move(ask), std::move(done), Clock::now(), patience);
  wake_later();
}

void NodeServer::shake_hands(PeerId id, Node& node, const wire::Message& message) {
  if (const auto* hello = std::get_if<wire::Hello>(&message); hello != nullptr && !node.hello) {
    if (hello->version != wire::kVersion)
      return peers_.drop(id, fmt::format("it speaks version {}, wanted {}", hello->version, wire::kVersion));
    const bool is_rival = kind_ == kFirstNode && hello->identity.run_id == rival_;
    if (!is_rival && hello->identity.run_id != kind_)
      return peers_.drop(id, fmt::format("it looks for {}, and here are {}", hello->identity.run_id, kind_));
    node.hello = *hello;
    return peers_.send(
        id, wire::encode(wire::Challenge{node.nonce, wire::proof_of_store(key_.key, *hello, node.nonce)}));
  }
  if (const auto* get = std::get_if<wire::Get>(&message);
      get != nullptr && get->key == kCredential && node.hello && !std::exchange(node.has_credential, true))
    return give_credential(id, get->id);
  const auto* proof = std::get_if<wire::Proof>(&message);
  if (proof == nullptr || !node.hello) return peers_.drop(id, "it sent a message out of turn");
  if (!equal_in_constant_time(proof->proof, wire::proof_of_rank(key_.key, *node.hello, node.nonce)))
    return peers_.drop(id, "wrong proof of the key");
  node.proven = true;
  node.last_heard = Clock::now();
  peers_.trust(id);
  peers_.send(id, wire::encode(wire::Welcome{}));
  if (node.hello->identity.run_id == rival_)
    peers_.send(id,
                encode(Note{.line = "", .missing = coordinator_.is_joining() ? coordinator_.missing() : ""}));
}

// Only processes of our user can open it, and they might read the key in our home as well.
void NodeServer::give_credential(PeerId id, std::uint32_t question) {
  MungeAnswer answer = {.text = {},
                        .problem = "the first node got its key from --key_file or another fleetrun"};
  if (key_.by_munge) answer = make_credential({key_.key.bytes.begin(), key_.key.bytes.end()});
  if (answer.problem.empty()) return peers_.send(id, wire::encode(wire::Value{question, answer.text}));
  peers_.send(id, wire::encode(wire::Refused{answer.problem}));
  peers_.drop_when_sent(id, "it asked for a credential of MUNGE: " + answer.problem);
}

void NodeServer::abandon() {
  abandoned_ = true;
  peers_.stop_listening();
  look_.cancel();
  wake_.cancel();
  peers_.drop_all("this node leaves the run");
}

void NodeServer::on_drop(const Peer& peer, const std::string& why) {
  const auto gone = nodes_.extract(peer.id);
  if (abandoned_) return questions_.lost(peer.id);
  if (!gone || !gone.mapped().proven) {
    ++dropped_;
    const auto& hello = gone ? gone.mapped().hello : std::nullopt;
    if (hello && !hello->identity.run_id.starts_with(kRival))
      perform(coordinator_.refused(split_host_and_port(peer.name).host));
    return;
  }
  questions_.lost(peer.id);
  perform(coordinator_.lost(peer.id, why, gone.mapped().last_heard, Clock::now(), why == kPeerLeft));
}

// When we stood still ourselves (SIGSTOP, a frozen machine), nobody else is to blame for it.
void NodeServer::look_for_silence() {
  const TimePoint now = Clock::now();
  const bool stood_still = now - std::exchange(looked_, now) > 2 * kNodeBeat;
  std::vector<PeerId> silent;
  for (auto& [id, node] : nodes_) {
    if (stood_still) node.last_heard = now;
    if (node.proven && now - node.last_heard > kNodeSilence) silent.push_back(id);
  }
  for (const PeerId id : silent) peers_.drop(id, fmt::format("no answer for {} s", kNodeSilence.count()));
  look_.call_at(now + kNodeBeat, [this] { look_for_silence(); });
}

void NodeServer::perform(const Coordinator::Actions& actions) {
  for (const auto& action : actions) {
    if (const auto* tell = std::get_if<Coordinator::Tell>(&action)) send(tell->to, encode(tell->message));
    if (const auto* drop = std::get_if<Coordinator::Drop>(&action))
      peers_.drop_when_sent(drop->peer, drop->why);
  }
  wake_later();
}

void NodeServer::send(const std::vector<PeerId>& to, std::string message) {
  const auto bytes = std::make_shared<const std::string>(std::move(message));
  for (const PeerId peer : to) peers_.send(peer, bytes);
}

void NodeServer::wake_later() {
  const auto decision = coordinator_.wake_at(), patience = questions_.wake_at();
  if (!decision && !patience) return wake_.cancel();
  const TimePoint never = TimePoint::max();
  wake_.call_at(std::min(decision.value_or(never), patience.value_or(never)), [this] {
    questions_.woke(Clock::now());
    perform(coordinator_.woke(Clock::now()));
  });
}

void NodeServer::finish() {
  peers_.stop_listening();
  std::vector<PeerId> all;
  for (const auto& [id, node] : nodes_) all.push_back(id);
  for (const PeerId id : all) peers_.drop_when_sent(id, "the run is over");
  bool late = false;
  look_.call_at(Clock::now() + kFinishPatience, [&late] { late = true; });
  while (peers_.peers() > 0 && !late) loop_.run_one();
  look_.cancel();
  wake_.cancel();
  peers_.drop_all("the run is over");
}

}  // namespace fleetrun::launch
