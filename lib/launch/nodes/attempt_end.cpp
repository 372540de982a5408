#include "launch/nodes/attempt_end.h"

#include <utility>

#include <fmt/format.h>

#include "launch/evidence/lost_peer.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

// Somebody asked for it, so no failure takes its place.
bool is_wish(const NodeFailure& failure) {
  const auto cause = cause_called(failure.cause);
  return cause == Cause::stopped || cause == Cause::timed_out;
}

}  // namespace

void AttemptEnd::happened_here(const NodeFailure& failure, TimePoint now) {
  if (!ending_ || (is_wish(failure) && !is_wish(ending_->failure))) ending_ = {failure, false, now};
}

void AttemptEnd::know_more(const NodeFailure& failure) {
  if (ending_ && !ending_->is_told && ending_->failure.cause == failure.cause &&
      ending_->failure.rank == failure.rank)
    ending_->failure = failure;
}

void AttemptEnd::was_told(const Stop& stop) {
  const NodeFailure failure = {.cause = stop.cause,
                               .line = stop.why,
                               .block = fmt::format("fleetrun: {}\n", stop.why),
                               .exit_code = stop.exit_code,
                               .signal = stop.signal,
                               .rank = stop.rank,
                               .evidence = {}};
  if (!ending_ || is_wish(failure) || !is_wish(ending_->failure)) ending_ = {failure, true};
}

// What the first node has told happened before its loss. Its Stop without a cause lets the ranks start again with other nodes.
bool AttemptEnd::may_follow_from_loss(TimePoint heard) const {
  const NodeFailure& failure = ending_->failure;
  if (is_wish(failure)) return false;
  if (ending_->is_told) return failure.cause.empty() || cause_called(failure.cause) == Cause::node_lost;
  return heard <= ending_->known || may_tell_of_lost_peer(failure.line);
}

NodeFailure AttemptEnd::before(NodeFailure loss, TimePoint heard) const {
  if (!ending_) return loss;
  if (may_follow_from_loss(heard)) {
    loss.block = ending_->failure.block + loss.block;
    return loss;
  }
  NodeFailure failure = ending_->failure;
  failure.block += fmt::format("fleetrun: then {}\n", loss.line);
  failure.line += "; then " + loss.line;
  return failure;
}

}  // namespace fleetrun::launch
