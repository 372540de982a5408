#include "runtime/exec/device_times.h"

#include "base/run/timeline.h"

namespace fleetrun::runtime {

DeviceTimes::DeviceTimes(Streams& streams, std::size_t ops)
    : streams_(streams), ops_(ops), start_(streams.make_stamp()) {
  for (Pair& op : ops_) {
    op.before = streams.make_stamp();
    op.after = streams.make_stamp();
  }
}

void DeviceTimes::begin() {
  for (Pair& op : ops_) op.was_given = false;
  is_running_ = true;
  streams_.synchronise();
  start_->record(kComputeStream);
  streams_.synchronise();
  start_ns_ = monotonic_ns();
}

void DeviceTimes::stamp(OpId op, int stream, const std::function<void()>& give) {
  const std::lock_guard lock(giving_.at(static_cast<std::size_t>(stream)));
  Pair& pair = ops_[static_cast<std::size_t>(op)];
  pair.before->record(stream);
  give();
  pair.after->record(stream);
  pair.was_given = true;
}

void DeviceTimes::end(const Note& note) {
  is_running_ = false;
  streams_.synchronise();
  for (std::size_t id = 0; id < ops_.size(); ++id)
    if (const Pair& op = ops_[id]; op.was_given)
      note(static_cast<OpId>(id), start_ns_ + op.before->ns_after(*start_),
           start_ns_ + op.after->ns_after(*start_));
}

}  // namespace fleetrun::runtime
