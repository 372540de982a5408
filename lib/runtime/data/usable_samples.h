// Reads the samples of a data set, and remembers which of them cannot be used and why.
#pragma once
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "job/spec/job_spec.h"
#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime {

struct SkipPolicy {
  job::BadSample bad_sample = job::BadSample::fail;
  bool substitutes = true;  // another sample takes the place of one that is skipped
};

// Several threads may use it at once.
class UsableSamples {
 public:
  // The data set must outlive it. Throws Error(os) without memory.
  UsableSamples(const DataSet& data_set, SkipPolicy policy);

  // Reads the sample that `framing` names, or the one that takes its place, into `planes` as DataSet::read does.
  // Returns which one it read; kNoSample where no sample was named, or it is skipped and has no substitute.
  // Looks for damage in all of a file until it was read once without any, whatever framing.to_the_end says.
  // Throws the Error of a bad sample unless these are skipped; Error(io) when the disk failed for too many samples,
  // Error(data) when too many samples in a row are bad, Error(os) without memory.
  std::int32_t read(const Framing& framing, ReadScratch& scratch, std::uint8_t* planes);

  // Why samples were skipped, a text for each sample since the last call.
  std::vector<std::string> take_reasons();

  // All skipped samples in order, each name followed by a zero.
  std::string skipped_names();

 private:
  bool can_use(const Framing& framing, ReadScratch& scratch, std::uint8_t* planes);
  void read_with_retries(Framing framing, ReadScratch& scratch, std::uint8_t* planes);
  void skip(std::int32_t sample, const Error& problem);
  bool is_skipped(std::int32_t sample);
  bool is_read(std::int32_t sample);
  void note_read(std::int32_t sample);

  const DataSet& data_set_;
  const SkipPolicy policy_;

  std::mutex mutex_;                // guards all below
  std::vector<bool> read_;          // by sample: it was read to its end, and is good
  std::set<std::int32_t> skipped_;  // samples that cannot be used
  int unreadable_ = 0;              // skipped samples that the disk did not give
  std::vector<std::string> reasons_;
  std::string last_reason_;
};

}  // namespace fleetrun::runtime
