#include "runtime/exec/stream_order.h"

namespace fleetrun::runtime {

StreamOrder::StreamOrder(StreamPlan plan, Streams& streams)
    : plan_(std::move(plan)), done_(plan_.stream.size()), begun_(streams.make_event()) {
  for (std::size_t i = 0; i < done_.size(); ++i)
    if (plan_.marked[i]) done_[i] = streams.make_event();
}

void StreamOrder::begin() {
  if (plan_.first.empty()) return;
  begun_->record(kComputeStream);
  for (const OpId op : plan_.first) begun_->hold_back(stream_of(op));
}

void StreamOrder::before(OpId op) {
  for (const OpId other : plan_.waits[static_cast<std::size_t>(op)])
    done_[static_cast<std::size_t>(other)]->hold_back(stream_of(op));
}

void StreamOrder::after(OpId op) {
  if (plan_.marked[static_cast<std::size_t>(op)]) done_[static_cast<std::size_t>(op)]->record(stream_of(op));
}

void StreamOrder::end() {
  for (const OpId op : plan_.last) done_[static_cast<std::size_t>(op)]->hold_back(kComputeStream);
}

}  // namespace fleetrun::runtime
