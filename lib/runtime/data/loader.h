// Batches ready before they are asked for: threads read, decode and normalise the samples of the epoch's
// plan, or leave the last of these to a device.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/run/timeline.h"
#include "job/spec/job_spec.h"
#include "runtime/data/augment.h"
#include "runtime/data/batch_ring.h"
#include "runtime/data/formats/data_set.h"
#include "runtime/data/order/epoch_progress.h"
#include "runtime/data/order/sampler.h"
#include "runtime/data/usable_samples.h"

namespace fleetrun::runtime {

struct LoaderOptions {
  int batch = 32;        // samples of each rank, without a global batch
  int global_batch = 0;  // samples of all ranks together; 0: each rank has `batch`
  int rank = 0;
  int world = 1;
  std::int64_t seed = 1;
  bool shuffle = true;
  job::Uneven uneven = job::Uneven::pad;
  job::Sampler sampler = job::Sampler::all;
  job::BadSample bad_sample = job::BadSample::fail;
  job::Augment augment = job::Augment::none;
  std::vector<double> mean, deviation;  // see make_normalisation
  int threads = 2;
  int prefetch = 4;    // batches
  bool images = true;  // false: labels alone, for who needs no images; with BadSample::fail
  ImageForm form = ImageForm::numbers;
  bool evaluation = false;       // every sample once over all ranks, in order
  Timeline* timeline = nullptr;  // gets a span of each piece of a batch that is made; it outlives the loader
  MakeJpegDecoder make_jpeg_decoder;  // for each thread, one of a device; empty: libjpeg-turbo decodes
};

// What the job says for one of its data sets; rank, world, seed and evaluation are left to the caller.
LoaderOptions make_loader_options(const job::DataSpec& data, const job::DataSetSpec& set);

class Loader {
 public:
  // Takes all memory that batches will ever need and starts the threads. The data set must outlive the
  // loader. Throws Error(config) when options and data set do not fit, Error(os) without memory or threads.
  Loader(const DataSet& data_set, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Begins an epoch, at its batch `start.batch`, whether or not the last one was read to its end.
  void start_epoch(const EpochStart& start);
  void start_epoch(int epoch, int first_batch = 0) {
    start_epoch(EpochStart{.epoch = epoch, .batch = first_batch});
  }

  // The next batch in order, or nullptr after the last; while it waits, `arrived` is called whenever some samples have been read.
  // Allocates nothing. Rethrows the Error of the first
  // sample of the batch that could not be read. Damage is found when a sample is read for the first time, wherever in the file it is:
  // what is skipped does not depend on the crop. With BadSample::skip a sample that cannot be decoded gives its place to
  // the next one of the data set that can (in training) or to none (in evaluation); so does one in a thousand that
  // cannot be read from the disk, again and again: more than that are an Error(io).
  const Batch* next(const std::function<void()>& arrived = nullptr);

  // Why samples were skipped, a text for each that was not asked for yet.
  std::vector<std::string> take_skipped() { return samples_.take_reasons(); }

  // Of all that were skipped so far, each followed by a zero.
  std::string skipped_names() { return samples_.skipped_names(); }

  // Of all files so far, if make_jpeg_decoder is set.
  const JpegCounts& jpegs() const { return jpegs_; }

  int batch() const { return recipe_.shard.batch_of_rank(); }  // samples of this rank
  int batches_per_epoch() const { return runtime::batches_per_epoch(recipe_.shard); }

 private:
  // How samples become batches.
  struct Recipe {
    const DataSet& data_set;
    LoaderOptions options;
    Normalisation normalisation;
    ShardSpec shard;
    Timeline::Label label = 0;  // of the spans in options.timeline
  };
  struct Workspace;  // of one thread

  static Recipe make_recipe(const DataSet& data_set, const LoaderOptions& options);
  std::unique_ptr<Workspace> make_workspace();
  void run_thread(Workspace& workspace);
  bool piece_is_due() const { return epoch_.piece_is_due(batches_.slots()); }
  Piece take_piece();
  void finish_piece(const Piece& piece, int samples);
  int fill(const Piece& piece, Workspace& workspace);
  bool fill_place(const Piece& piece, int place, Workspace& workspace);
  bool write_label(std::int32_t sample, const Piece& piece, int place);
  void write_numbers(const Framing& framing, const Piece& piece, int place, Workspace& workspace);
  void write_view(const Framing& framing, const Piece& piece, int place);
  void record_error(const Piece& piece, int place, std::exception_ptr error);
  void stop_threads();

  const Recipe recipe_;
  UsableSamples samples_;  // has a lock of its own
  JpegCounts jpegs_;

  std::mutex mutex_;                  // guards all below, except what batches point to
  std::condition_variable work_;      // a piece may be due, or the threads are to end
  std::condition_variable progress_;  // a batch is complete, or a thread became idle
  BatchRing batches_;
  EpochProgress epoch_;  // its epoch, batch and samples are unchanged while threads are busy
  int busy_ = 0;         // threads at work on a piece
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fleetrun::runtime
