#include "launch/nodes/attempt_end.h"

#include <fmt/format.h>

#include "launch/evidence/lost_peer.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

bool is_wish(const NodeFailure& failure) {
  const auto cause = cause_called(failure.cause);
  return cause == Cause::stopped || cause == Cause::timed_out;
}

// The ranks end because a node is lost, or to start again with another one.
bool is_about_nodes(const NodeFailure& failure) {
  return failure.cause.empty() || cause_called(failure.cause) == Cause::node_lost;
}

bool tells_of_lost_peer(const NodeFailure& failure) {
  const JsonValue* const exception = failure.evidence.find("exception", JsonValue::Kind::text);
  return may_tell_of_lost_peer(exception != nullptr ? exception->text : failure.line);
}

}  // namespace

void AttemptEnd::happened_here(const NodeFailure& failure, TimePoint now) {
  if (!ending_ || is_about_nodes(ending_->failure)) ending_ = {failure, false, now};
  is_wished_ = is_wished_ || is_wish(failure);
  if (!wish_ && is_wish(failure)) wish_ = {failure, false, now};
}

const NodeFailure* AttemptEnd::unheard_wish(TimePoint received) const {
  return wish_ && received <= wish_->known ? &wish_->failure : nullptr;
}

void AttemptEnd::know_more(const Ended& ended) {
  is_wished_ = is_wished_ || ended.no_restart;
  if (ended.failure && ending_ && !ending_->is_told && ending_->failure.cause == ended.failure->cause &&
      ending_->failure.rank == ended.failure->rank)
    ending_->failure = *ended.failure;
}

// The first node compares the times of all failures.
void AttemptEnd::was_told(const Stop& stop) {
  const NodeFailure failure = {.cause = stop.cause,
                               .line = stop.why,
                               .block = fmt::format("fleetrun: {}\n", stop.why),
                               .exit_code = stop.exit_code,
                               .signal = stop.signal,
                               .rank = stop.rank,
                               .evidence = {}};
  if (!ending_ || !is_about_nodes(failure)) ending_ = {failure, true};
  is_wished_ = is_wished_ || is_wish(failure);
}

// What the first node has told happened before its loss.
bool AttemptEnd::may_follow_from_loss(TimePoint received) const {
  const NodeFailure& failure = ending_->failure;
  if (is_wish(failure)) return false;
  if (ending_->is_told) return is_about_nodes(failure);
  return received <= ending_->known || tells_of_lost_peer(failure);
}

NodeFailure AttemptEnd::before(NodeFailure loss, TimePoint received) const {
  if (!ending_) return loss;
  if (may_follow_from_loss(received)) {
    loss.block = ending_->failure.block + loss.block;
    return loss;
  }
  NodeFailure failure = ending_->failure;
  failure.block += fmt::format("fleetrun: then {}\n", loss.line);
  failure.line += "; then " + loss.line;
  return failure;
}

}  // namespace fleetrun::launch
