#include "comm/shared/shared_segments.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/run/run_key.h"

namespace fleetrun::comm {
namespace {

const std::string kReady = "ready";

std::string hex(const Nonce& bytes) { return fmt::format("{:02x}", fmt::join(bytes, "")); }

std::vector<int> names_of(const Party& party) {
  std::vector<int> names;
  for (int rank = 0; rank < party.size; ++rank) names.push_back(party.name_of(rank));
  return names;
}

// What one rank brings. Its segment begins with a secret, which proves that what was opened is what was meant.
struct Brought {
  std::optional<OwnSegment> segment;
  OwnSegment::Front front;  // of the first communicator: whether there is memory for it is found out here
  std::string value;        // "SECRET PID FD", or nothing
  std::string problem;
};

Brought bring_segment() {
  Brought brought;
  try {
    brought.segment.emplace(Nonce().size());
    brought.front = brought.segment->add_front(kFrontBytes);
    const Nonce secret = make_nonce();
    std::memcpy(brought.segment->front(), secret.data(), secret.size());
    brought.value = hex(secret) + " " + brought.segment->address();
  } catch (const Error& error) {  // told to the others, who then do not use it either
    brought.segment.reset();
    brought.problem = error.message();
  }
  return brought;
}

PeerSegment open_segment(const std::string& value) {
  const std::string secret = value.substr(0, 2 * Nonce().size());
  PeerSegment segment(value.substr(std::min(value.size(), secret.size() + 1)), Nonce().size());
  Nonce found;
  std::memcpy(found.data(), segment.front(), found.size());
  if (hex(found) != secret) throw Error(ErrorKind::os, "what was opened is not the memory of that rank");
  return segment;
}

std::vector<std::optional<PeerSegment>> open_peers(int self, const std::vector<std::string>& values) {
  std::vector<std::optional<PeerSegment>> peers(values.size());
  for (std::size_t other = 0; other < values.size(); ++other)
    if (static_cast<int>(other) != self && !values[other].empty())
      peers[other].emplace(open_segment(values[other]));
  return peers;
}

}  // namespace

SharedSegments::SharedSegments(const Party& party, OwnSegment own, const OwnSegment::Front& front,
                               std::vector<std::optional<PeerSegment>> peers)
    : names_(names_of(party)), own_(std::move(own)), first_front_(front), peers_(std::move(peers)) {}

OwnSegment::Front SharedSegments::take_front() {
  if (first_front_) return *std::exchange(first_front_, std::nullopt);
  return own_.add_front(kFrontBytes);
}

bool SharedSegments::hold(const Party& party) const {
  const std::vector<int> wanted = names_of(party);
  return std::all_of(wanted.begin(), wanted.end(), [this](int name) {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  });
}

std::byte* SharedSegments::at(int name, const SharedPlace& place) {
  const std::lock_guard lock(mutex_);
  return peers_[index_of(name)]->at(place);
}

int SharedSegments::process(int name) const {
  const std::optional<PeerSegment>& peer = peers_[index_of(name)];
  return peer ? peer->process() : -1;
}

std::size_t SharedSegments::index_of(int name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end())
    throw Error(ErrorKind::internal, fmt::format("rank {} is none of those that share memory", name));
  return static_cast<std::size_t>(found - names_.begin());
}

SegmentsJoin join_segments(const Party& party, const std::string& name, Deadline deadline) {
  Brought own = bring_segment();
  const std::vector<std::string> values = exchange(party, name + " start", own.value, deadline);
  std::vector<std::optional<PeerSegment>> peers;
  std::string state = own.segment ? kReady : own.problem;
  try {
    if (own.segment) peers = open_peers(party.rank, values);
  } catch (const Error& error) {
    state = error.message();
  }
  const std::vector<std::string> states = exchange(party, name + " end", state, deadline);
  const auto unready = std::find_if(states.begin(), states.end(), [](auto& each) { return each != kReady; });
  if (unready != states.end())
    return {nullptr, fmt::format("rank {} says: {}",
                                 party.name_of(static_cast<int>(unready - states.begin())), *unready)};
  return {std::make_shared<SharedSegments>(party, std::move(*own.segment), own.front, std::move(peers)), ""};
}

}  // namespace fleetrun::comm
