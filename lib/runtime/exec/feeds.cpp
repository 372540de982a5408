#include "runtime/exec/feeds.h"

#include <cstring>

namespace fleetrun::runtime {

Feeds::Feeds(const Program& program, Device& device) : streams_(*device.streams()) {
  for (const ValueId id : program.of_kind(ValueKind::feed)) {
    Feed& feed = feeds_[id];
    feed.bytes = program.value(id).bytes();
    for (Place& place : feed.places)
      place = {streams_.allocate_staging(feed.bytes), device.allocate(feed.bytes), streams_.make_event(),
               streams_.make_event()};
  }
}

void* Feeds::put(ValueId id, const void* host) {
  Feed& feed = feeds_.at(id);
  feed.current = 1 - feed.current;
  Place& place = feed.places[feed.current];
  place.filled->wait();  // the copy before the last one still reads the staging memory
  std::memcpy(place.staging->data(), host, feed.bytes);
  place.read->hold_back(kCopyStream);
  streams_.upload(place.staging->data(), place.memory->data(), feed.bytes, kCopyStream);
  place.filled->record(kCopyStream);
  place.filled->hold_back(kComputeStream);
  return place.memory->data();
}

void Feeds::release() {
  for (auto& [id, feed] : feeds_) feed.places[feed.current].read->record(kComputeStream);
}

}  // namespace fleetrun::runtime
