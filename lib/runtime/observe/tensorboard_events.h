// Event files as TensorBoard reads them: TFRecords (length and data, each with a masked CRC-32C) of `Event` messages in
// protobuf's wire format, of which a training needs scalars only.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/unique_fd.h"

namespace fleetrun::runtime {

struct Scalar {
  std::string_view tag;  // "train/loss"
  double value = 0;
};

// One file in a folder, in which other runs may have theirs. A record is in the file when a call returns, whole or,
// when it does not fit on the disk, not at all.
class EventFile {
 public:
  // events.out.tfevents.SECONDS.HOST.PID, begun at `wall_time` (seconds since 1970). Throws Error(create|io).
  EventFile(const std::string& folder, double wall_time);

  // The steps from this one on, which earlier files of the folder may have, count no more. Throws Error(io).
  void start_again_at(std::int64_t step, double wall_time);

  void add(std::int64_t step, double wall_time, const std::vector<Scalar>& scalars);  // Throws Error(io).

  const std::string& path() const { return path_; }

 private:
  void append(const std::string& event);

  std::string path_;
  UniqueFd fd_;
};

// What the file is made of.
std::uint32_t crc32c(std::string_view bytes);
std::string tf_record(std::string_view data);
std::string version_event(double wall_time);
std::string restart_event(std::int64_t step, double wall_time);
std::string scalars_event(std::int64_t step, double wall_time, const std::vector<Scalar>& scalars);

}  // namespace fleetrun::runtime
