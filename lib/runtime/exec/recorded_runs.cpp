#include "runtime/exec/recorded_runs.h"

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kMostPlaces = 8;  // of feeds that alternate

}  // namespace

void RecordedRuns::run(const std::vector<void*>& feeds, const std::function<void()>& give) {
  if (!why_not_.empty()) return give();
  const auto [found, first_time] = by_feeds_.try_emplace(feeds);
  if (by_feeds_.size() > kMostPlaces) {
    forget();
    why_not_ = "the feeds lie at other places in each step";
    return give();
  }
  if (first_time) return give();
  if (found->second == nullptr) record(found->second, give);
  if (found->second == nullptr) return give();
  found->second->replay();
  ++replays_;
}

// What cannot be recorded is done the ordinary way from now on. If it cannot be done at all, that run says so.
void RecordedRuns::record(std::unique_ptr<Recording>& recording, const std::function<void()>& give) {
  streams_.begin_recording();
  try {
    give();
    recording = streams_.end_recording();
  } catch (const Error& error) {
    why_not_ = "the device cannot record a step: " + error.message();
  }
  if (why_not_.empty()) return;
  try {
    streams_.end_recording();  // where `give` failed
  } catch (const Error&) {     // it has ended already
  }
  recording = nullptr;
}

}  // namespace fleetrun::runtime
