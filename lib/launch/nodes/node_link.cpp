#include "launch/nodes/node_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/peer_watch.h"
#include "base/system/socket_address.h"
#include "launch/nodes/munge.h"
#include "launch/nodes/node_server.h"

namespace fleetrun::launch {
namespace {

namespace wire = store_protocol;

constexpr std::chrono::milliseconds kFirstPause(10), kLongestPause(500);  // between tries to connect
constexpr auto kConnectPatience = std::chrono::seconds(1);                // with each of several addresses
constexpr std::size_t kRounds =
    5;  // to all addresses, before an end with another key counts as the first node
constexpr auto kAnswerPatience = std::chrono::seconds(5);  // to a handshake
constexpr int kFirstEchoes = 8;                            // in a row, for a good estimate of the clock
constexpr auto kOffsetAge = std::chrono::seconds(60);      // clocks drift: an older estimate is replaced
constexpr std::size_t kReadBytes = 64 * 1024;

std::int64_t in_ns(TimePoint time) { return time.time_since_epoch() / std::chrono::nanoseconds(1); }

}  // namespace

NodeLink::NodeLink(EventLoop& loop, std::vector<Endpoint> addresses, const NodeKey& key, Listener listener,
                   std::string_view wanted)
    : loop_(loop),
      addresses_(std::move(addresses)),
      key_(key),
      listener_(std::move(listener)),
      wanted_(wanted),
      timer_(loop),
      pause_(kFirstPause) {
  connect();
}

NodeLink::~NodeLink() { close(); }

void NodeLink::close() {
  timer_.cancel();
  if (fd_) loop_.forget(fd_.get());
  fd_.reset();
  state_ = State::lost;
}

const Endpoint& NodeLink::address() const {
  return addresses_[static_cast<std::size_t>(tries_) % addresses_.size()];
}

// The first node may not have begun when the link came to its other addresses.
bool NodeLink::may_be_elsewhere() const {
  return addresses_.size() > 1 && std::cmp_less(tries_, kRounds * addresses_.size());
}

// Of a try that gets no answer, the problem is noted. If there is another address, it is the next one's turn.
void NodeLink::bound_try(Clock::duration patience, const std::string& problem) {
  timer_.call_at(Clock::now() + patience, [this, problem] {
    if (addresses_.size() > 1) return retry(problem);
    problem_ = problem;
  });
}

void NodeLink::connect() {
  if (addresses_.empty()) return retry("this host cannot resolve its name");
  const SocketAddress to = SocketAddress::from(address()).value();
  fd_ = UniqueFd(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_)
    throw Error(ErrorKind::os, fmt::format("connecting to the first node: {}", describe_errno(errno)));
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  send_small_packets(fd_.get());  // nodes meet, and the doctor can examine them, where full packets are lost
  if (::connect(fd_.get(), to.data(), to.size()) != 0 && errno != EINPROGRESS)
    return retry(describe_errno(errno));
  if (addresses_.size() > 1) bound_try(kConnectPatience, "no answer");
  loop_.when_writable(fd_.get(), [this] { on_connected(); });
}

// The first node may not have begun.
void NodeLink::retry(const std::string& problem) {
  problem_ = addresses_.size() > 1 ? fmt::format("{}: {}", address().describe(), problem) : problem;
  ++tries_;
  if (fd_) loop_.forget(fd_.get());
  fd_.reset();
  input_.clear();
  output_.clear();
  state_ = State::connecting;
  timer_.call_at(Clock::now() + pause_, [this] { connect(); });
  pause_ = std::min<Clock::duration>(2 * pause_, kLongestPause);
}

void NodeLink::on_connected() {
  int problem = 0;
  socklen_t size = sizeof problem;
  ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
  if (problem != 0) return retry(describe_errno(problem));
  state_ = State::shaking_hands;
  keep_asking(fd_.get());
  hello_ = {.identity = {.run_id = wanted_}, .nonce = make_nonce()};
  loop_.watch_readable(fd_.get(), [this] { read(); });
  output_ += wire::encode(hello_);
  challenge_.reset();
  bound_try(kAnswerPatience, "something listens there and does not answer as fleetrun does");
  write();
}

void NodeLink::read() {
  std::array<char, kReadBytes> buffer;
  const ssize_t count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    const std::string why = count == 0 ? "it closed the connection" : describe_loss(errno);
    return state_ == State::open ? lose(why) : retry(why);
  }
  input_.append(buffer.data(), static_cast<std::size_t>(count));
  last_heard_ = last_received_ = Clock::now();
  take_frames();
}

void NodeLink::take_frames() {
  std::size_t used = 0;
  while (fd_ && input_.size() - used >= wire::kLengthBytes) {
    const std::size_t bytes = wire::decode_length(input_.data() + used);
    if (bytes == 0 || bytes > wire::kMaxFrame) return lose("it sent bytes that a first node never sends");
    if (input_.size() - used < wire::kLengthBytes + bytes) break;
    const auto message = wire::decode(std::string_view(input_).substr(used + wire::kLengthBytes, bytes));
    if (!message) return lose("it sent bytes that a first node never sends");
    used += wire::kLengthBytes + bytes;
    on_frame(*message);
  }
  if (fd_) input_.erase(0, used);
}

void NodeLink::on_frame(const wire::Message& message) {
  if (const auto* challenge = std::get_if<wire::Challenge>(&message)) return prove(*challenge);
  if (std::holds_alternative<wire::Welcome>(message)) {
    state_ = State::open;
    beat();
    return listener_.on_open();
  }
  if (const auto* credential = std::get_if<wire::Value>(&message); credential != nullptr && challenge_)
    return take_key(credential->value);
  if (const auto* refused = std::get_if<wire::Refused>(&message); refused != nullptr && challenge_)
    return fail_over_key(refused->why);
  const auto* frame = std::get_if<wire::Set>(&message);
  const auto said = frame == nullptr ? std::nullopt : decode_from_first(*frame);
  if (!said) return lose("it sent a message that no first node sends");
  hear(*said);
}

bool NodeLink::is_proven_by(const wire::Challenge& challenge) const {
  return equal_in_constant_time(challenge.proof, wire::proof_of_store(key_.key, hello_, challenge.nonce));
}

void NodeLink::prove(const wire::Challenge& challenge) {
  if (is_proven_by(challenge)) {
    output_ += wire::encode(wire::Proof{wire::proof_of_rank(key_.key, hello_, challenge.nonce)});
  } else {
    if (!key_.by_munge || challenge_)
      return fail_over_key(challenge_ ? "it sent the key of another run" : "");
    challenge_ = challenge;
    output_ += wire::encode(wire::Get{0, std::string(kCredential)});
  }
  write();
}

// The other end has proven with its challenge that it knows the key in the credential.
void NodeLink::take_key(const std::string& credential) {
  const MungeAnswer answer = open_credential(credential);
  if (!answer.problem.empty()) return fail_over_key(answer.problem);
  if (answer.text.size() != RunKey::kBytes) return fail_over_key("it sent no key");
  std::ranges::copy(answer.text, key_.key.bytes.begin());
  prove(*challenge_);
}

void NodeLink::fail_over_key(const std::string& munge_problem) {
  if (wanted_ != kFirstNode || may_be_elsewhere()) return retry("it has another key");
  const std::string by_munge =
      munge_problem.empty() ? "" : fmt::format("; MUNGE does not share it: {}", munge_problem);
  throw Error(
      ErrorKind::protocol, fmt::format("{} has another key than this node{}", address().describe(), by_munge),
      key_.by_munge
          ? fmt::format(
                "copy it: scp {}:.fleetrun/key ~/.fleetrun/key; or name one with --key_file on all nodes",
                bracketed(address().host))
          : fmt::format("copy the key of the first node to {} of this node", key_.file));
}

void NodeLink::hear(const FromFirst& message) {
  const auto* echo = std::get_if<Echo>(&message);
  if (echo == nullptr) return listener_.on_message(message);
  set_clock(*echo);
  if (++echoes_ < kFirstEchoes) send(Beat{in_ns(Clock::now())});
}

// The echo was sent somewhere between our sending and our receiving: the middle, give or take half of that time. RFC 5905 8.
void NodeLink::set_clock(const Echo& echo) {
  const TimePoint now = Clock::now();
  const std::int64_t back = in_ns(now);
  const std::int64_t error = (back - echo.sent) / 2 + 1;
  if (error >= offset_.error && now - offset_.measured < kOffsetAge) return;
  offset_ = {.ns = echo.received - (echo.sent + back) / 2, .error = error, .measured = now};
}

SharedTime NodeLink::shared(TimePoint time) const { return {in_ns(time) + offset_.ns, offset_.error}; }

// When we stood still ourselves, the first node is not to blame for its silence.
void NodeLink::beat() {
  const TimePoint now = Clock::now();
  if (last_beat_ != TimePoint() && now - last_beat_ > 2 * kNodeBeat) last_heard_ = now;
  last_beat_ = now;
  if (now - last_heard_ > kNodeSilence) return lose(fmt::format("no answer for {} s", kNodeSilence.count()));
  send(Beat{in_ns(now)});
  if (fd_) timer_.call_at(now + kNodeBeat, [this] { beat(); });
}

void NodeLink::send(const FromNode& message) {
  if (state_ != State::open) return;
  output_ += encode(message);
  write();
}

void NodeLink::write() {
  while (fd_ && !output_.empty()) {
    const ssize_t count = ::send(fd_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return loop_.when_writable(fd_.get(), [this] { write(); });
    if (count < 0) return state_ == State::open ? lose(describe_loss(errno)) : retry(describe_loss(errno));
    output_.erase(0, static_cast<std::size_t>(count));
  }
}

// The other end must not take this for the end of our process: it gets a reset instead of the end of the connection. Who has not proven that
// it is the first node may be another program, at an address that the first node does not have.
void NodeLink::lose(const std::string& why) {
  if (state_ == State::shaking_hands && (wanted_ != kFirstNode || addresses_.size() > 1)) return retry(why);
  const linger reset = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close();
  listener_.on_lost(why);
}

std::string NodeLink::local_address() const {
  const auto address = SocketAddress::own_end(fd_.get());
  return address ? address->endpoint().host : "";
}

}  // namespace fleetrun::launch
