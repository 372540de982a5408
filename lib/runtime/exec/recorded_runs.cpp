#include "runtime/exec/recorded_runs.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kMostPlaces = 8;  // of feeds that alternate

}  // namespace

void RecordedRuns::run(const std::vector<void*>& feeds, const std::function<void()>& give) {
  if (!begun_) begin();
  if (!why_not_.empty()) return give();
  const auto [found, first_time] = by_feeds_.try_emplace(feeds);
  if (by_feeds_.size() > kMostPlaces) {
    // On all ranks at the same time, because each has as many feeds in a run.
    stop("the feeds lie at other places in each step");
    return give();
  }
  if (first_time) return give();
  if (found->second == nullptr && !record(found->second, give)) return give();
  found->second->replay();
  ++replays_;
}

// Settings and tracing can differ between ranks.
void RecordedRuns::begin() {
  begun_ = true;
  if (!all_ranks(why_not_.empty()) && why_not_.empty()) stop("another rank does not record its steps");
}

void RecordedRuns::forget_if(bool moved) {
  if (begun_ && why_not_.empty() && !all_ranks(!moved)) by_feeds_.clear();
}

// False if it cannot be recorded: runs are done the ordinary way from now on, and all recordings are gone.
bool RecordedRuns::record(std::unique_ptr<Recording>& recording, const std::function<void()>& give) {
  std::unique_ptr<Recording> made = recording_of(give);
  if (!all_ranks(made != nullptr)) {
    if (why_not_.empty()) stop("another rank cannot record a step");
    return false;
  }
  recording = std::move(made);
  return true;
}

// Returns null if the device cannot record the run. The run is then given without a recording, and fails itself if it cannot be done at all.
// Throws Error(temporary) if another rank was lost meanwhile.
std::unique_ptr<Recording> RecordedRuns::recording_of(const std::function<void()>& give) {
  try {
    streams_.begin_recording();
    give();
    return streams_.end_recording();
  } catch (const Error& error) {
    end_after_failure();
    if (error.kind() == ErrorKind::temporary) throw;
    stop(fmt::format("the device cannot record a step: {}", error.what()));
  } catch (const std::exception& error) {
    end_after_failure();
    stop(fmt::format("the device cannot record a step: {}", error.what()));
  }
  return nullptr;
}

void RecordedRuns::end_after_failure() {
  try {
    streams_.end_recording();
  } catch (const Error&) {
    return;  // it has ended already
  }
}

void RecordedRuns::stop(const std::string& why) {
  why_not_ = why;
  by_feeds_.clear();
  log_line("fleetrun", fmt::format("warning: CUDA graphs are not used, since {}", why));
}

}  // namespace fleetrun::runtime
