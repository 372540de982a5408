// The questions that the first node asks other nodes, one at a time for each node: a node never has to send more than
// one answer, which would delay its beats. A state machine without sockets and clock.
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
  static constexpr Clock::duration kPatience = std::chrono::seconds(2);  // for each answer, from ask() on

  using Send = std::function<void(PeerId node, const Ask& ask)>;
  // Called once per question. No answer: the node is lost, or did not answer in time.
  using Done = std::function<void(const std::optional<std::string>& answer)>;

  explicit NodeQuestions(Send send) : send_(std::move(send)) {}

  // Chooses `ask.id`.
  void ask(PeerId node, Ask ask, Done done, TimePoint now, Clock::duration patience = kPatience);
  void heard(PeerId node, const Answer& answer);  // ignores a late answer, but the node can be asked again
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
    std::int64_t sent = 0;         // id of the question at the node, even if its time is over; 0: none
    std::deque<Question> waiting;  // unanswered questions, by deadline
  };

  void send_next(PeerId node);

  Send send_;
  std::map<PeerId, Line> lines_;  // one per node with questions
  std::int64_t last_id_ = 0;
};

}  // namespace fleetrun::launch
