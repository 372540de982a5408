#include "runtime/data/usable_samples.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "runtime/data/order/sampler.h"

namespace fleetrun::runtime {
namespace {

constexpr int kRetries = 3;             // of reading a file
constexpr int kMostSubstitutes = 64;    // samples in a row; a data set with more bad ones is broken
constexpr int kUnreadableOneIn = 1000;  // samples that may be skipped because of the disk

std::vector<bool> make_marks(int samples) {
  try {
    return std::vector<bool>(static_cast<std::size_t>(samples));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::os, fmt::format("no memory to note which of {} samples were read", samples));
  }
}

// Skipping is for what is wrong with one file.
Error with_hint_to_skip(const Error& problem) {
  if (problem.kind() != ErrorKind::data || !problem.hint().empty()) return problem;
  return Error(problem.kind(), problem.message(),
               "data.bad_sample=skip leaves such files out, with a warning for each");
}

// Not about want of memory, nor about a device that decodes.
bool is_about_sample(const Error& problem) {
  return problem.kind() != ErrorKind::os && problem.kind() != ErrorKind::internal;
}

}  // namespace

UsableSamples::UsableSamples(const DataSet& data_set, SkipPolicy policy)
    : data_set_(data_set), policy_(policy), read_(make_marks(data_set.size())) {}

std::int32_t UsableSamples::read(const Framing& framing, ReadScratch& scratch, std::uint8_t* planes) {
  const std::int32_t sample = framing.sample;
  if (sample == kNoSample || can_use(framing, scratch, planes)) return sample;
  if (!policy_.substitutes) return kNoSample;
  const int most = std::min(kMostSubstitutes, data_set_.size() - 1);
  Framing other = framing;
  for (int i = 1; i <= most; ++i) {
    other.sample = static_cast<std::int32_t>((std::int64_t{sample} + i) % data_set_.size());
    if (can_use(other, scratch, planes)) return other.sample;
  }
  const std::lock_guard lock(mutex_);
  const std::string which =
      most < kMostSubstitutes
          ? fmt::format("none of the {} samples can be used", data_set_.size())
          : fmt::format("{} and the {} samples after it cannot be used, wanted at most {} skipped in a row",
                        data_set_.describe(sample), most, kMostSubstitutes);
  throw Error(ErrorKind::data, fmt::format("{}; the last that was skipped: {}", which, last_reason_));
}

// False: it is skipped. Throws where bad samples end the run.
bool UsableSamples::can_use(const Framing& framing, ReadScratch& scratch, std::uint8_t* planes) {
  if (is_skipped(framing.sample)) return false;
  try {
    read_with_retries(framing, scratch, planes);
    return true;
  } catch (const Error& problem) {
    if (problem.kind() == ErrorKind::internal) throw problem.with(data_set_.describe(framing.sample));
    if (!is_about_sample(problem)) throw;
    if (policy_.bad_sample == job::BadSample::fail) throw with_hint_to_skip(problem);
    skip(framing.sample, problem);
    return false;
  }
}

void UsableSamples::read_with_retries(Framing framing, ReadScratch& scratch, std::uint8_t* planes) {
  framing.to_the_end = !is_read(framing.sample);
  for (int reads = 1;; ++reads) {
    try {
      data_set_.read(framing, scratch, planes);
      if (framing.to_the_end) note_read(framing.sample);
      return;
    } catch (const std::bad_alloc&) {
      throw Error(ErrorKind::os, fmt::format("no memory to read {}", data_set_.describe(framing.sample)));
    } catch (const Error& problem) {
      if (problem.kind() == ErrorKind::data || problem.kind() == ErrorKind::permission ||
          !is_about_sample(problem))
        throw;
      // It was there when the data set was opened: what is wrong now is the disk.
      if (reads > kRetries)
        throw Error(ErrorKind::io, fmt::format("{} (read {} times)", problem.message(), reads));
    }
  }
}

void UsableSamples::skip(std::int32_t sample, const Error& problem) {
  const std::lock_guard lock(mutex_);
  if (!skipped_.insert(sample).second) return;
  reasons_.push_back(problem.message());
  last_reason_ = problem.message();
  if (problem.kind() == ErrorKind::data) return;
  const int most = std::max(1, data_set_.size() / kUnreadableOneIn);
  if (++unreadable_ > most)
    throw Error(ErrorKind::io,
                fmt::format("{} of {} samples could not be read, wanted at most {} skipped; the last: {}",
                            unreadable_, data_set_.size(), most, problem.message()));
}

bool UsableSamples::is_skipped(std::int32_t sample) {
  const std::lock_guard lock(mutex_);
  return skipped_.count(sample) > 0;
}

bool UsableSamples::is_read(std::int32_t sample) {
  const std::lock_guard lock(mutex_);
  return read_[static_cast<std::size_t>(sample)];
}

void UsableSamples::note_read(std::int32_t sample) {
  const std::lock_guard lock(mutex_);
  read_[static_cast<std::size_t>(sample)] = true;
}

std::vector<std::string> UsableSamples::take_reasons() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reasons_, {});
}

std::string UsableSamples::skipped_names() {
  const std::lock_guard lock(mutex_);
  std::string names;
  for (const std::int32_t sample : skipped_) names += data_set_.describe(sample) + '\0';
  return names;
}

}  // namespace fleetrun::runtime
