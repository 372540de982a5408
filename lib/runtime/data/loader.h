// Batches ready before they are asked for: threads read, decode and normalise the samples of the epoch's
// plan.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/timeline.h"
#include "job/job_spec.h"
#include "runtime/data/augment.h"
#include "runtime/data/data_set.h"
#include "runtime/data/sampler.h"

namespace fleetrun::runtime {

struct LoaderOptions {
  int batch = 32;  // samples, per rank
  int rank = 0;
  int world = 1;
  std::int64_t seed = 1;
  bool shuffle = true;
  job::Uneven uneven = job::Uneven::pad;
  job::BadSample bad_sample = job::BadSample::fail;
  job::Augment augment = job::Augment::none;
  std::vector<double> mean, deviation;  // see make_normalisation
  int threads = 2;
  int prefetch = 4;              // batches
  bool evaluation = false;       // every sample once over all ranks, in order
  Timeline* timeline = nullptr;  // gets a span of each piece of a batch that is made; it outlives the loader
};

// What the job says for one of its data sets; rank, world, seed and evaluation are left to the caller.
LoaderOptions make_loader_options(const job::DataSpec& data, const job::DataSetSpec& set);

// One batch, alive until the next one is asked for.
struct Batch {
  float* images = nullptr;         // [batch, channels, height, width], 64-byte aligned
  std::int32_t* labels = nullptr;  // [batch], -1 where there is no sample; the image there is zero
  int samples = 0;                 // places that hold a sample
};

class Loader {
 public:
  // Takes all memory that batches will ever need and starts the threads. The data set must outlive the
  // loader. Throws Error(config) when options and data set do not fit, Error(os) without memory or threads.
  Loader(const DataSet& data_set, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Begins an epoch, at its batch `first_batch`, whether or not the last one was read to its end.
  void start_epoch(int epoch, int first_batch = 0);

  // The next batch in order, or nullptr after the last; while it waits, `arrived` is called whenever some samples have been read.
  // Allocates nothing. Rethrows the Error of the first
  // sample of the batch that could not be read. Damage is found when a sample is read for the first time, wherever in the file it is:
  // what is skipped does not depend on the crop. With BadSample::skip a sample that cannot be decoded gives its place to
  // the next one of the data set that can (in training) or to none (in evaluation); so does one in a thousand that
  // cannot be read from the disk, again and again: more than that are an Error(io).
  const Batch* next(const std::function<void()>& arrived = nullptr);

  // Why samples were skipped, a text for each that was not asked for yet.
  std::vector<std::string> take_skipped();

  // Of all that were skipped so far, each followed by a zero.
  std::string skipped_names();

  int batches_per_epoch() const;

 private:
  // A place for one batch; batch k uses slot k modulo their number.
  struct Slot {
    Batch batch;
    int number = -1;  // of the batch that it holds
    int pending = 0;  // samples that are still to come
    int broken = 0;   // position of the first sample that could not be read
    std::exception_ptr error;
  };
  // Samples first to last of a batch: what one thread takes on at once.
  struct Piece {
    int batch = 0, first = 0, last = 0;
  };
  struct Workspace;  // of one thread

  void allocate();
  std::unique_ptr<Workspace> make_workspace() const;
  void run_thread(Workspace& workspace);
  bool piece_is_due() const;
  Piece take_piece();
  void finish_piece(const Piece& piece, int samples);
  int fill(const Piece& piece, Workspace& workspace);
  bool fill_place_with(std::int32_t sample, const Piece& piece, int place, Workspace& workspace);
  std::int32_t pick_usable(std::int32_t sample, Workspace& workspace);
  bool can_use(std::int32_t sample, Workspace& workspace);
  void read(std::int32_t sample, Workspace& workspace);
  void skip(std::int32_t sample, const Error& problem);
  bool is_skipped(std::int32_t sample);
  bool is_read(std::int32_t sample);
  void note_read(std::int32_t sample);
  bool fill_place(const Piece& piece, int place, Workspace& workspace);
  void record_error(const Piece& piece, int place, std::exception_ptr error);
  Slot& slot_of(int batch) { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }
  void stop_threads();

  struct AlignedDelete {
    void operator()(float* memory) const;
  };

  const DataSet& data_set_;
  const LoaderOptions options_;
  const ShardSpec shard_;
  const Normalisation normalisation_;
  std::unique_ptr<float[], AlignedDelete> images_;
  std::vector<std::int32_t> labels_;

  Timeline::Label label_ = 0;  // of these spans

  std::mutex mutex_;                  // guards all below, except what batches point to
  std::condition_variable work_;      // a piece may be due, or the threads are to end
  std::condition_variable progress_;  // a batch is complete, or a thread became idle
  std::vector<Slot> slots_;
  std::vector<std::int32_t>
      plan_;  // of this epoch: batches_ * batch samples; unchanged while threads are busy
  int epoch_ = 0;
  int batches_ = 0;
  int taken_batch_ = 0, taken_place_ = 0;  // the next piece starts here
  int released_ = 0;                       // batches whose slots may be used again
  int delivered_ = 0;                      // batches that next() gave out
  int busy_ = 0;                           // threads at work on a piece
  bool stop_ = false;
  std::vector<bool> read_;          // by sample: it was read to its end, and is good
  std::set<std::int32_t> skipped_;  // samples that cannot be used
  int unreadable_ = 0;              // those of them that the disk did not give
  std::vector<std::string> skipped_words_;
  std::vector<std::thread> threads_;
};

}  // namespace fleetrun::runtime
