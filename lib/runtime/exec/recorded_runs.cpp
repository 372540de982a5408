#include "runtime/exec/recorded_runs.h"

#include <exception>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"

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
  try {
    streams_.begin_recording();
    give();
    recording = streams_.end_recording();
    return;
  } catch (const std::exception& error) {
    why_not_ = fmt::format("the device cannot record a step: {}", error.what());
  }
  log_line("fleetrun", fmt::format("warning: CUDA graphs are not used, since {}", why_not_));
  try {
    streams_.end_recording();  // where `give` failed
  } catch (const Error&) {
    return;  // it has ended already
  }
}

}  // namespace fleetrun::runtime
