#include "launch/nodes/node_questions.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fleetrun::launch {

void NodeQuestions::ask(PeerId node, Ask ask, Done done, TimePoint now) {
  ask.id = ++last_id_;
  auto& open = open_[node];
  open.push_back({std::move(ask), std::move(done), now + kPatience});
  if (open.size() == 1) send_next(node);
}

// A copy: sending may find that the node is lost.
void NodeQuestions::send_next(PeerId node) {
  const auto found = open_.find(node);
  if (found == open_.end()) return;
  if (found->second.empty()) {
    open_.erase(found);
    return;
  }
  const Ask next = found->second.front().ask;
  send_(node, next);
}

void NodeQuestions::heard(PeerId node, const Answer& answer) {
  const auto found = open_.find(node);
  if (found == open_.end() || found->second.front().ask.id != answer.id) return;
  const Done done = std::move(found->second.front().done);
  found->second.pop_front();
  send_next(node);
  done(answer.text);
}

void NodeQuestions::lost(PeerId node) {
  const auto gone = open_.extract(node);
  if (!gone) return;
  for (const Question& question : gone.mapped()) question.done(std::nullopt);
}

void NodeQuestions::woke(TimePoint now) {
  std::vector<Done> late;
  std::vector<PeerId> nodes;
  for (auto& [node, open] : open_) {
    if (open.front().deadline > now) continue;
    nodes.push_back(node);
    while (!open.empty() && open.front().deadline <= now) {
      late.push_back(std::move(open.front().done));
      open.pop_front();
    }
  }
  for (const PeerId node : nodes) send_next(node);
  for (const Done& done : late) done(std::nullopt);
}

std::optional<TimePoint> NodeQuestions::wake_at() const {
  std::optional<TimePoint> first;
  for (const auto& [node, open] : open_)
    first = std::min(first.value_or(open.front().deadline), open.front().deadline);
  return first;
}

}  // namespace fleetrun::launch
