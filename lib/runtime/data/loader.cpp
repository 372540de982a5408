#include "runtime/data/loader.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

ShardSpec make_shard(const DataSet& data_set, const LoaderOptions& options) {
  return {.samples = data_set.size(),
          .batch = options.batch,
          .rank = options.rank,
          .world = options.world,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .uneven = options.uneven,
          .evaluation = options.evaluation,
          .labels = options.sampler == job::Sampler::balanced ? &data_set.labels() : nullptr,
          .global_batch = options.global_batch};
}

void check(const ShardSpec& shard, const LoaderOptions& options) {
  if (options.batch < 1 || options.threads < 1 || options.prefetch < 1)
    throw Error(ErrorKind::config,
                fmt::format("batch_size {}, loader_threads {} and prefetch {} must be at least 1",
                            options.batch, options.threads, options.prefetch));
  if (batches_per_epoch(shard) == 0)
    throw Error(
        ErrorKind::config,
        fmt::format(
            "the data set has {} samples, one step of all ranks needs {}; with data.uneven \"drop\" nothing is left",
            shard.samples, shard.shares().samples));
}

}  // namespace

LoaderOptions make_loader_options(const job::DataSpec& data, const job::DataSetSpec& set) {
  LoaderOptions options;
  options.batch = data.batch_size;
  options.shuffle = data.shuffle;
  options.uneven = data.uneven;
  options.sampler = data.sampler;
  options.bad_sample = data.bad_sample;
  options.augment = set.augment;
  options.mean = set.mean;
  options.deviation = set.deviation;
  options.threads = data.loader_threads;
  options.prefetch = data.prefetch;
  return options;
}

struct Loader::Workspace {
  ReadScratch read;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> row;
};

Loader::Recipe Loader::make_recipe(const DataSet& data_set, const LoaderOptions& options) {
  Recipe recipe = {
      .data_set = data_set,
      .options = options,
      .normalisation = make_normalisation(options.mean, options.deviation, data_set.shape().channels),
      .shard = make_shard(data_set, options)};
  check(recipe.shard, options);
  if (options.timeline != nullptr)
    recipe.label = options.timeline->add(
        {.lane = Lane::loader, .name = "read and decode", .category = "data", .value = ""});
  return recipe;
}

Loader::Loader(const DataSet& data_set, const LoaderOptions& options)
    : recipe_(make_recipe(data_set, options)),
      samples_(data_set, {.bad_sample = options.bad_sample, .substitutes = !options.evaluation}),
      // One batch is with the caller while the others fill.
      batches_(data_set.shape(), recipe_.shard.batch_of_rank(), options.prefetch + 1, options.form) {
  try {
    for (int i = 0; i < options.threads; ++i)
      threads_.emplace_back([this, workspace = make_workspace()] { run_thread(*workspace); });
  } catch (const std::system_error& problem) {
    stop_threads();
    throw Error(ErrorKind::os,
                fmt::format("starting {} loader threads: {}", options.threads, problem.what()));
  } catch (...) {  // no memory for the pixels of another thread
    stop_threads();
    throw;
  }
}

Loader::~Loader() { stop_threads(); }

std::unique_ptr<Loader::Workspace> Loader::make_workspace() {
  auto workspace = std::make_unique<Workspace>();
  workspace->pixels.resize(recipe_.data_set.shape().elements());
  if (recipe_.options.make_jpeg_decoder)
    workspace->read.decoder.decode_jpegs_on(recipe_.options.make_jpeg_decoder(), jpegs_);
  return workspace;
}

void Loader::start_epoch(const EpochStart& start) {
  std::unique_lock lock(mutex_);
  epoch_.give_up();
  progress_.wait(lock, [this] { return busy_ == 0; });
  batches_.clear();
  epoch_ = begin_epoch(recipe_.shard, start);
  work_.notify_all();
}

const Batch* Loader::next(const std::function<void()>& arrived) {
  std::unique_lock lock(mutex_);
  epoch_.released = epoch_.delivered;
  work_.notify_all();
  if (epoch_.delivered == epoch_.batches) return nullptr;
  const int number = epoch_.delivered;
  while (!batches_.is_complete(number)) {
    progress_.wait(lock);
    if (arrived) arrived();
  }
  if (batches_.error(number)) std::rethrow_exception(batches_.error(number));
  ++epoch_.delivered;
  return &batches_.batch(number);
}

void Loader::run_thread(Workspace& workspace) {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stop_ || piece_is_due(); });
    if (stop_) return;
    const Piece piece = take_piece();
    ++busy_;
    lock.unlock();
    const int samples = fill(piece, workspace);
    lock.lock();
    --busy_;
    finish_piece(piece, samples);
  }
}

Piece Loader::take_piece() {
  const Piece piece = epoch_.take_piece();
  if (piece.first == 0) batches_.begin(piece.batch);
  return piece;
}

void Loader::finish_piece(const Piece& piece, int samples) {
  batches_.finish(piece, samples);
  progress_.notify_all();
}

int Loader::fill(const Piece& piece, Workspace& workspace) {
  const SpanHere span(recipe_.options.timeline, recipe_.label);
  int samples = 0;
  for (int place = piece.first; place < piece.last; ++place) {
    try {
      if (fill_place(piece, place, workspace)) ++samples;
    } catch (...) {  // next() throws it again
      record_error(piece, place, std::current_exception());
    }
  }
  return samples;
}

bool Loader::fill_place(const Piece& piece, int place, Workspace& workspace) {
  Framing framing = {.augment = recipe_.options.augment,
                     .seed = recipe_.options.seed,
                     .epoch = epoch_.epoch,
                     .sample = epoch_.sample_at(piece.batch, place)};
  if (!recipe_.options.images) return write_label(framing.sample, piece, place);
  if (recipe_.shard.is_balanced()) framing.place = epoch_.place_in_epoch(piece.batch, place);
  const bool leaves_numbers_to_device = recipe_.options.form == ImageForm::pixels;
  const std::size_t first = static_cast<std::size_t>(place) * recipe_.data_set.shape().elements();
  std::uint8_t* const pixels =
      leaves_numbers_to_device ? batches_.batch(piece.batch).pixels + first : workspace.pixels.data();
  framing.sample = samples_.read(framing, workspace.read, pixels);
  if (leaves_numbers_to_device)
    write_view(framing, piece, place);
  else
    write_numbers(framing, piece, place, workspace);
  return write_label(framing.sample, piece, place);
}

bool Loader::write_label(std::int32_t sample, const Piece& piece, int place) {
  batches_.batch(piece.batch).labels[place] =
      sample == kNoSample ? kNoSample : recipe_.data_set.label(sample);
  return sample != kNoSample;
}

void Loader::write_numbers(const Framing& framing, const Piece& piece, int place, Workspace& workspace) {
  const ImageShape& shape = recipe_.data_set.shape();
  float* planes = batches_.batch(piece.batch).images + static_cast<std::size_t>(place) * shape.elements();
  if (framing.sample == kNoSample)
    std::fill_n(planes, shape.elements(), 0.0F);
  else
    write_planes(workspace.pixels.data(), shape, plan_view(framing), recipe_.normalisation, workspace.row,
                 planes);
}

void Loader::write_view(const Framing& framing, const Piece& piece, int place) {
  batches_.batch(piece.batch).views[place] =
      framing.sample == kNoSample ? kNoImage : numbers_of(plan_view(framing));
}

void Loader::record_error(const Piece& piece, int place, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  batches_.record_error(piece, place, std::move(error));
}

void Loader::stop_threads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace fleetrun::runtime
