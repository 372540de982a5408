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
  void heard(PeerId node, const Answer& answer);  // a late one counts for nothing, but the node is free again
  void lost(PeerId node);
  void woke(TimePoint now);  // at wake_at()
  std::optional<TimePoint> wake_at() const;

 private:
  struct Question {
    Ask ask;
    Done done;
    TimePoint deadline;
  };
  struct Line {
    std::int64_t sent = 0;  // what the node works on, also when nobody waits for it any more; 0: nothing
    std::deque<Question> waiting;  // those who wait for answers, by their deadlines
  };

  void send_next(PeerId node);

  Send send_;
  std::map<PeerId, Line> lines_;  // of each node
  std::int64_t last_id_ = 0;
};

}  // namespace fleetrun::launch
