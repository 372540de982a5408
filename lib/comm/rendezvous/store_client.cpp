#include "comm/rendezvous/store_client.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"

namespace fleetrun::comm {

using namespace store_protocol;

namespace {

// The store answers everything but a get at once; this much it may be delayed by a busy machine.
constexpr auto kReplyDeadline = std::chrono::seconds(30);

constexpr auto kTellAfter = std::chrono::seconds(30);  // a node that is only slow has answered for long

// The other ranks wait for this one and cannot know why, so it says early what it cannot reach.
Socket connect(const Endpoint& endpoint, const std::string& who, Deadline deadline) {
  const Deadline first(std::min<std::chrono::milliseconds>(kTellAfter, deadline.remaining()));
  try {
    return Socket::connect(endpoint, first);
  } catch (const Error& error) {
    if (!first.passed() || deadline.passed()) throw;
    log_line(who, fmt::format("connecting to the store: {}; trying again for {} s", error.message(),
                              std::chrono::ceil<std::chrono::seconds>(deadline.remaining()).count()));
  }
  return Socket::connect(endpoint, deadline);
}

// Which request an answer belongs to; 0 for none.
std::uint32_t id_of(const Message& message) {
  if (const auto* done = std::get_if<Done>(&message)) return done->id;
  if (const auto* value = std::get_if<Value>(&message)) return value->id;
  if (const auto* absent = std::get_if<Absent>(&message)) return absent->id;
  return 0;
}

}  // namespace

StoreClient::StoreClient(const Endpoint& endpoint, const RunKey& key, const Identity& identity,
                         Deadline deadline)
    : identity_(identity),
      socket_(with_context(fmt::format("rank {} connects to the store", identity.rank),
                           [&] { return connect(endpoint, who(), deadline); })) {
  with_context(fmt::format("{} joins the store at {}", who(), endpoint.describe()),
               [&] { handshake(key, deadline); });
}

std::string StoreClient::who() const { return fmt::format("rank {}", identity_.rank); }

void StoreClient::handshake(const RunKey& key, Deadline deadline) {
  const Hello hello{.identity = identity_, .nonce = make_nonce()};
  socket_.send(encode(hello), deadline);
  const Message answer = expect(deadline, "the store's challenge");
  const auto* challenge = std::get_if<Challenge>(&answer);
  if (challenge == nullptr)
    throw Error(ErrorKind::protocol, fmt::format("{}: it is not a store", socket_.peer().describe()));
  if (!equal_in_constant_time(challenge->proof, proof_of_store(key, hello, challenge->nonce)))
    throw Error(ErrorKind::protocol,
                fmt::format("{} does not hold the key of our run", socket_.peer().describe()),
                "another run may have taken this port, or the key files of the nodes differ");
  socket_.send(encode(Proof{proof_of_rank(key, hello, challenge->nonce)}), deadline);
  if (!std::holds_alternative<Welcome>(expect(deadline, "the store's welcome")))
    throw Error(ErrorKind::protocol,
                fmt::format("{} answered our proof with something else", socket_.peer().describe()));
}

std::optional<Message> StoreClient::receive(Deadline deadline) {
  if (!socket_.receive(input_, kLengthBytes, deadline)) return std::nullopt;
  const std::size_t bytes = decode_length(input_.data());
  if (bytes == 0 || bytes > kMaxFrame)
    throw Error(ErrorKind::protocol, fmt::format("{} sent a frame of {} bytes; it is not a store",
                                                 socket_.peer().describe(), bytes));
  if (!socket_.receive(input_, kLengthBytes + bytes, deadline)) return std::nullopt;
  const auto message = decode(std::string_view(input_).substr(kLengthBytes));
  input_.clear();
  if (!message)
    throw Error(ErrorKind::protocol,
                fmt::format("{} sent bytes that are not a message of a store", socket_.peer().describe()));
  if (const auto* refused = std::get_if<Refused>(&*message))
    throw Error(ErrorKind::protocol, fmt::format("the store at {} refused {}: {}", socket_.peer().describe(),
                                                 who(), refused->why));
  return message;
}

Message StoreClient::expect(Deadline deadline, const std::string& what) {
  if (auto message = receive(deadline)) return *std::move(message);
  throw Error(ErrorKind::temporary, fmt::format("{} waited {:g} s for {} at {}", who(),
                                                deadline.total_seconds(), what, socket_.peer().describe()));
}

Message StoreClient::ask(const Message& request, Deadline deadline, const std::string& what) {
  return with_context(fmt::format("{} waited for {}", who(), what), [&] {
    socket_.send(encode(request), Deadline(kReplyDeadline));
    while (true) {
      Message answer = expect(deadline, what);
      if (id_of(answer) == last_id_) return answer;  // else: to a get that was given up
    }
  });
}

void StoreClient::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  ask(Set{++last_id_, key, value}, Deadline(kReplyDeadline), fmt::format("the store to keep \"{}\"", key));
}

std::string StoreClient::get(const std::string& key, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  const Message answer = ask(Get{++last_id_, key}, deadline, fmt::format("\"{}\" in the store", key));
  if (const auto* value = std::get_if<Value>(&answer)) return value->value;
  throw Error(ErrorKind::protocol,
              fmt::format("the store at {} did not answer with a value", socket_.peer().describe()));
}

std::optional<std::string> StoreClient::look(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const Message answer =
      ask(Look{++last_id_, key}, Deadline(kReplyDeadline), fmt::format("a look at \"{}\" in the store", key));
  if (const auto* value = std::get_if<Value>(&answer)) return value->value;
  return std::nullopt;
}

}  // namespace fleetrun::comm
