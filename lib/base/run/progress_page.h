// One page of shared memory per rank: the worker writes where it is, the launcher reads. After it lie the records of the rank's collectives, and
// the text that its log did not take. The launcher makes the memfd, and the worker inherits it (RankEnv::progress_fd).
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "base/run/flight_record.h"
#include "base/run/time_use.h"
#include "base/system/lost_text.h"
#include "base/system/nvml.h"
#include "base/system/unique_fd.h"

namespace fleetrun {

// The first in this order; then a rank trains, waits for data (reading) or for what is written (saving), and evaluates in turn.
enum class Phase : std::uint32_t {
  starting,
  joining,
  loading,
  training,
  reading,
  saving,
  evaluating,
  finished
};
std::string_view describe(Phase phase);

// How the time of a rank had been used when it took a snapshot of its training.
struct KeptTime {
  std::atomic<std::int64_t> place{-1};  // of the snapshot, in samples of the training; -1: none
  std::array<std::atomic<std::int64_t>, kTimeUses> spent_ns{};
};

// What the driver says about the GPU of the rank.
class GpuLoadPage {
 public:
  void write(const GpuLoad& load);
  GpuLoad read() const;

 private:
  std::atomic<int> busy_percent_{-1}, celsius_{-1};
  std::atomic<std::int64_t> memory_used_{-1}, memory_total_{-1}, milliwatts_{-1};
};

// Lock-free and self-contained, as two processes see it. One writer; readers take what they find.
struct ProgressPage {
  static constexpr std::uint64_t kMagic = 0x43656761506e7552;  // "RunPageC"
  static constexpr std::size_t kBytes = 4096;

  std::atomic<std::uint64_t> magic{kMagic};
  std::atomic<Phase> phase{Phase::starting};
  std::atomic<std::uint32_t> epoch{0};
  std::atomic<std::uint32_t> epochs{0};                                // 0: not known
  std::atomic<std::uint64_t> step{0};                                  // steps done, over all epochs
  std::atomic<std::uint64_t> steps{0};                                 // steps of the whole run; 0: not known
  std::atomic<double> loss{std::numeric_limits<double>::quiet_NaN()};  // NaN: none yet
  std::atomic<double> images_per_second{0};                            // of this rank
  std::atomic<std::int64_t> heartbeat_ns{0};  // CLOCK_MONOTONIC of the last sign of life

  std::atomic<double> communication_share{0};  // of the last step: time in which the rank only communicated
  std::atomic<std::int64_t> run_start_ns{0};   // CLOCK_MONOTONIC when the first attempt began; 0: not known
  std::array<std::atomic<std::int64_t>, kTimeUses> spent_ns{};  // since then, by TimeUse
  std::atomic<std::uint64_t> first_step{0};  // steps of the training that spent_ns does not include
  std::array<KeptTime, 2> kept;              // of the last two snapshots, in turns
  std::atomic<std::int64_t> first_own_checkpoint{
      0};  // least number of those that this run writes, whichever attempt; 0: not known
  std::atomic<std::int64_t> saved_steps{-1};  // of the last checkpoint that was complete; -1: none
  // In samples (place_in_training): of that checkpoint, or of one before it; -1: none.
  std::atomic<std::int64_t> saved_place{-1};
  std::atomic<bool> is_done{false};  // the training is over; of rank 0: and its weights are saved
  std::atomic<bool> has_saved_weights{
      false};  // by rank 0 in this attempt: the training is complete, and its weights are in output.dir
  std::atomic<bool> has_own_checkpoint{false};  // this run has saved one, whichever attempt
  std::atomic<bool> keeps_checkpoints{
      false};  // this rank was rank 0 in this run, and looked into their folder
  std::atomic<std::uint64_t> checkpoint_folder{0};  // of the run: CheckpointFolder::identity(); 0: not known

  // Times of CLOCK_MONOTONIC: the rank begins to look for a checkpoint, it has loaded the checkpoint, it has done its first
  // step of this attempt. 0 means that this has not happened.
  std::atomic<std::int64_t> load_began_ns{0}, load_ended_ns{0}, first_step_ns{0};

  GpuLoadPage gpu;

  void beat();  // heartbeat_ns = now

  // What the page of the next attempt begins with.
  void carry_over_to(ProgressPage& next) const;

  // Of a page that was mapped as below; memory that nobody writes to is never taken.
  FlightRecords& records();
  LostText& lost_text();
};
static_assert(sizeof(ProgressPage) <= ProgressPage::kBytes);
static_assert(std::atomic<double>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

// From here to the end of the block the page shows this phase, then the one before.
class PhaseHere {
 public:
  PhaseHere(ProgressPage& page, Phase phase) : page_(page), before_(page.phase) { page.phase = phase; }
  ~PhaseHere() { page_.phase = before_; }
  PhaseHere(const PhaseHere&) = delete;
  PhaseHere& operator=(const PhaseHere&) = delete;

 private:
  ProgressPage& page_;
  const Phase before_;
};

struct Unmap {
  void operator()(ProgressPage* page) const;
};
using ProgressPagePtr = std::unique_ptr<ProgressPage, Unmap>;

// Launcher: a new page in a memfd (not close-on-exec is the caller's choice). Throws Error(os).
UniqueFd make_progress_fd();
ProgressPagePtr map_new_progress_page(int fd);  // initialises it
// Worker: maps what it inherited; fd -1 gives a private page that nobody reads. Throws Error(protocol).
ProgressPagePtr map_inherited_progress_page(int fd);

}  // namespace fleetrun
