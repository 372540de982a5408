// The questions of the first node to the others: one at a time to each, so that a node never has more than one answer on its way and its beats
// never wait for many. A state machine without sockets and clock.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "launch/loop/clock.h"
#include "launch/loop/peer_server.h"
#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {

class NodeQuestions {
 public:
  static constexpr auto kPatience = std::chrono::seconds(2);  // from a question to its answer

  using Send = std::function<void(PeerId node, const Ask& ask)>;
  // Called once for each question. None: the node is lost, or did not answer in time.
  using Done = std::function<void(const std::optional<std::string>& answer)>;

  explicit NodeQuestions(Send send) : send_(std::move(send)) {}

  // `ask.id` is filled in.
  void ask(PeerId node, Ask ask, Done done, TimePoint now);
  void heard(PeerId node, const Answer& answer);  // a late one counts for nothing
  void lost(PeerId node);
  void woke(TimePoint now);  // at wake_at()
  std::optional<TimePoint> wake_at() const;

 private:
  struct Question {
    Ask ask;
    Done done;
    TimePoint deadline;
  };

  void send_next(PeerId node);

  Send send_;
  std::map<PeerId, std::deque<Question>> open_;  // of each node; the first one has been sent
  std::int64_t last_id_ = 0;
};

}  // namespace fleetrun::launch
