#include "launch/nodes/node_questions.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fleetrun::launch {

void NodeQuestions::ask(PeerId node, Ask ask, Done done, TimePoint now, Clock::duration patience) {
  ask.id = ++last_id_;
  Line& line = lines_[node];
  line.waiting.push_back({std::move(ask), std::move(done), now + patience});
  if (line.sent == 0) send_next(node);
}

// A copy is sent: sending may find that the node is lost.
void NodeQuestions::send_next(PeerId node) {
  const auto found = lines_.find(node);
  if (found == lines_.end()) return;
  if (found->second.waiting.empty()) {
    lines_.erase(found);
    return;
  }
  const Ask next = found->second.waiting.front().ask;
  found->second.sent = next.id;
  send_(node, next);
}

void NodeQuestions::heard(PeerId node, const Answer& answer) {
  const auto found = lines_.find(node);
  if (found == lines_.end() || found->second.sent != answer.id) return;
  auto& waiting = found->second.waiting;
  Done done;
  if (!waiting.empty() && waiting.front().ask.id == answer.id) {
    done = std::move(waiting.front().done);
    waiting.pop_front();
  }
  send_next(node);
  if (done) done(answer.text);
}

void NodeQuestions::lost(PeerId node) {
  const auto gone = lines_.extract(node);
  if (!gone) return;
  for (const Question& question : gone.mapped().waiting) question.done(std::nullopt);
}

void NodeQuestions::woke(TimePoint now) {
  std::vector<Done> late;
  for (auto& [node, line] : lines_)
    while (!line.waiting.empty() && line.waiting.front().deadline <= now) {
      late.push_back(std::move(line.waiting.front().done));
      line.waiting.pop_front();
    }
  for (const Done& done : late) done(std::nullopt);
}

std::optional<TimePoint> NodeQuestions::wake_at() const {
  std::optional<TimePoint> first;
  for (const auto& [node, line] : lines_)
    if (!line.waiting.empty())
      first = std::min(first.value_or(TimePoint::max()), line.waiting.front().deadline);
  return first;
}

}  // namespace fleetrun::launch
