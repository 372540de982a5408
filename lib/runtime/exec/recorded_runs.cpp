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
  if (!begun_) begin();
  if (!why_not_.empty()) return give();
  const auto [found, first_time] = by_feeds_.try_emplace(feeds);
  if (by_feeds_.size() > kMostPlaces) {
    by_feeds_.clear();
    why_not_ = "the feeds lie at other places in each step";
    return give();
  }
  if (first_time) return give();
  if (found->second == nullptr) record(found->second, give);
  if (found->second == nullptr) return give();
  found->second->replay();
  ++replays_;
}

// Settings and tracing can differ between ranks.
void RecordedRuns::begin() {
  begun_ = true;
  if (!all_ranks(why_not_.empty()) && why_not_.empty()) stop("another rank does not record its steps");
}

void RecordedRuns::place_anew(bool moved) {
  if (begun_ && why_not_.empty() && !all_ranks(!moved)) by_feeds_.clear();
}

// What cannot be recorded is done the ordinary way from now on. If it cannot be done at all, that run says so.
void RecordedRuns::record(std::unique_ptr<Recording>& recording, const std::function<void()>& give) {
  recording = recording_of(give);
  if (all_ranks(recording != nullptr)) return;
  recording = nullptr;
  if (why_not_.empty()) stop("another rank cannot record a step");
}

// Null: the device cannot record it.
std::unique_ptr<Recording> RecordedRuns::recording_of(const std::function<void()>& give) {
  try {
    streams_.begin_recording();
    give();
    return streams_.end_recording();
  } catch (const std::exception& error) {
    stop(fmt::format("the device cannot record a step: {}", error.what()));
  }
  try {
    streams_.end_recording();  // where `give` failed
  } catch (const Error&) {
    return nullptr;  // it has ended already
  }
  return nullptr;
}

void RecordedRuns::stop(const std::string& why) {
  why_not_ = why;
  log_line("fleetrun", fmt::format("warning: CUDA graphs are not used, since {}", why));
}

}  // namespace fleetrun::runtime
