#include "runtime/data/loader.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest vector register
constexpr int kRetries = 3;             // of reading a file
constexpr int kMostSubstitutes = 64;    // samples in a row; a data set with more bad ones is broken
constexpr int kUnreadableOneIn = 1000;  // samples that may be skipped because of the disk
constexpr int kPieceSamples = 8;  // enough to make the lock cheap, few enough for threads to share a batch

ShardSpec make_shard(const DataSet& data_set, const LoaderOptions& options) {
  return {.samples = data_set.size(),
          .batch = options.batch,
          .rank = options.rank,
          .world = options.world,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .uneven = options.uneven,
          .evaluation = options.evaluation};
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
            "the data set has {} samples, one batch of all ranks needs {} x {}; with data.uneven \"drop\" nothing is left",
            shard.samples, shard.world, shard.batch));
}

std::size_t batch_stride(const ImageShape& shape, int batch) {  // floats, so that each batch is aligned
  constexpr std::size_t kFloats = kAlignment / sizeof(float);
  const std::size_t floats = shape.elements() * static_cast<std::size_t>(batch);
  return (floats + kFloats - 1) / kFloats * kFloats;
}

}  // namespace

LoaderOptions make_loader_options(const job::DataSpec& data, const job::DataSetSpec& set) {
  LoaderOptions options;
  options.batch = data.batch_size;
  options.shuffle = data.shuffle;
  options.uneven = data.uneven;
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

void Loader::AlignedDelete::operator()(float* memory) const {
  ::operator delete[](memory, std::align_val_t{kAlignment});
}

Loader::Loader(const DataSet& data_set, const LoaderOptions& options)
    : data_set_(data_set),
      options_(options),
      shard_(make_shard(data_set, options)),
      normalisation_(make_normalisation(options.mean, options.deviation, data_set.shape().channels)) {
  check(shard_, options_);
  allocate();
  if (options_.timeline != nullptr)
    label_ = options_.timeline->add(
        {.lane = Lane::loader, .name = "read and decode", .category = "data", .value = ""});
  try {
    for (int i = 0; i < options_.threads; ++i)
      threads_.emplace_back([this, workspace = make_workspace()] { run_thread(*workspace); });
  } catch (const std::system_error& problem) {
    stop_threads();
    throw Error(ErrorKind::os,
                fmt::format("starting {} loader threads: {}", options_.threads, problem.what()));
  }
}

Loader::~Loader() { stop_threads(); }

void Loader::allocate() {
  // One batch is with the caller while the others fill.
  const auto count = static_cast<std::size_t>(options_.prefetch) + 1;
  const auto batch = static_cast<std::size_t>(options_.batch);
  const std::size_t stride = batch_stride(data_set_.shape(), options_.batch);
  try {
    images_.reset(new (std::align_val_t{kAlignment}) float[stride * count]);
    labels_.resize(batch * count);
    slots_.resize(count);
    read_.resize(static_cast<std::size_t>(data_set_.size()));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::os,
                fmt::format("no memory for {} batches of {} bytes", count, stride * sizeof(float)),
                "lower data.prefetch or data.batch_size");
  }
  for (std::size_t i = 0; i < count; ++i) slots_[i].batch = {&images_[i * stride], &labels_[i * batch], 0};
}

std::unique_ptr<Loader::Workspace> Loader::make_workspace() const {
  auto workspace = std::make_unique<Workspace>();
  workspace->pixels.resize(data_set_.shape().elements());
  return workspace;
}

int Loader::batches_per_epoch() const { return runtime::batches_per_epoch(shard_); }

void Loader::start_epoch(int epoch, int first_batch) {
  std::unique_lock lock(mutex_);
  taken_batch_ = batches_ = 0;  // no piece is due from here on
  progress_.wait(lock, [this] { return busy_ == 0; });
  for (Slot& slot : slots_) slot.number = -1;
  plan_ = plan_epoch(shard_, epoch);
  epoch_ = epoch;
  batches_ = batches_per_epoch();
  taken_batch_ = released_ = delivered_ = std::min(first_batch, batches_);
  taken_place_ = 0;
  work_.notify_all();
}

const Batch* Loader::next(const std::function<void()>& arrived) {
  std::unique_lock lock(mutex_);
  released_ = delivered_;
  work_.notify_all();
  if (delivered_ == batches_) return nullptr;
  Slot& slot = slot_of(delivered_);
  while (slot.number != delivered_ || slot.pending != 0) {
    progress_.wait(lock);
    if (arrived) arrived();
  }
  if (slot.error) std::rethrow_exception(slot.error);
  ++delivered_;
  return &slot.batch;
}

bool Loader::piece_is_due() const {
  return taken_batch_ < batches_ && taken_batch_ < released_ + static_cast<int>(slots_.size());
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

Loader::Piece Loader::take_piece() {
  const Piece piece = {taken_batch_, taken_place_, std::min(taken_place_ + kPieceSamples, options_.batch)};
  if (piece.first == 0) {
    Slot& slot = slot_of(piece.batch);
    slot.number = piece.batch;
    slot.pending = options_.batch;
    slot.batch.samples = 0;
    slot.error = nullptr;
  }
  taken_place_ = piece.last;
  if (taken_place_ == options_.batch) {
    ++taken_batch_;
    taken_place_ = 0;
  }
  return piece;
}

void Loader::finish_piece(const Piece& piece, int samples) {
  Slot& slot = slot_of(piece.batch);
  slot.batch.samples += samples;
  slot.pending -= piece.last - piece.first;
  progress_.notify_all();
}

int Loader::fill(const Piece& piece, Workspace& workspace) {
  const SpanHere span(options_.timeline, label_);
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
  const std::int32_t sample = plan_[static_cast<std::size_t>(piece.batch) * options_.batch + place];
  return fill_place_with(pick_usable(sample, workspace), piece, place, workspace);
}

bool Loader::fill_place_with(std::int32_t sample, const Piece& piece, int place, Workspace& workspace) {
  const ImageShape& shape = data_set_.shape();
  const Batch& batch = slot_of(piece.batch).batch;
  float* planes = batch.images + static_cast<std::size_t>(place) * shape.elements();
  if (sample == kNoSample) {
    batch.labels[place] = kNoSample;
    std::fill_n(planes, shape.elements(), 0.0F);
    return false;
  }
  batch.labels[place] = data_set_.label(sample);
  const View view = plan_view(options_.augment, options_.seed, epoch_, sample);
  write_planes(workspace.pixels.data(), shape, view, normalisation_, workspace.row, planes);
  return true;
}

// The sample, or who takes its place, with its pixels in the workspace.
std::int32_t Loader::pick_usable(std::int32_t sample, Workspace& workspace) {
  if (sample == kNoSample || can_use(sample, workspace)) return sample;
  if (options_.evaluation) return kNoSample;
  for (int i = 1; i <= std::min(kMostSubstitutes, data_set_.size() - 1); ++i) {
    const std::int32_t other = static_cast<std::int32_t>((std::int64_t{sample} + i) % data_set_.size());
    if (can_use(other, workspace)) return other;
  }
  throw Error(ErrorKind::data,
              fmt::format("{} and the {} samples after it cannot be used", data_set_.describe(sample),
                          std::min(kMostSubstitutes, data_set_.size() - 1)));
}

// False: it is skipped. Throws where bad samples end the run.
bool Loader::can_use(std::int32_t sample, Workspace& workspace) {
  if (is_skipped(sample)) return false;
  try {
    read(sample, workspace);
    return true;
  } catch (const Error& problem) {
    if (options_.bad_sample == job::BadSample::fail || problem.kind() == ErrorKind::os) throw;
    skip(sample, problem);
    return false;
  }
}

void Loader::read(std::int32_t sample, Workspace& workspace) {
  const Framing framing = {options_.augment, options_.seed, epoch_, sample, !is_read(sample)};
  for (int reads = 1;; ++reads) {
    try {
      data_set_.read(framing, workspace.read, workspace.pixels.data());
      if (framing.to_the_end) note_read(sample);
      return;
    } catch (const std::bad_alloc&) {
      throw Error(ErrorKind::os, fmt::format("no memory to read {}", data_set_.describe(sample)));
    } catch (const Error& problem) {
      if (problem.kind() == ErrorKind::data || problem.kind() == ErrorKind::os) throw;
      // It was there when the data set was opened: what is wrong now is the disk.
      if (reads > kRetries)
        throw Error(ErrorKind::io, fmt::format("{} (read {} times)", problem.message(), reads));
    }
  }
}

void Loader::skip(std::int32_t sample, const Error& problem) {
  const std::lock_guard lock(mutex_);
  if (!skipped_.insert(sample).second) return;
  skipped_words_.push_back(problem.message());
  if (problem.kind() == ErrorKind::data) return;
  const int most = std::max(1, data_set_.size() / kUnreadableOneIn);
  if (++unreadable_ > most)
    throw Error(ErrorKind::io,
                fmt::format("{} of {} samples could not be read, wanted at most {} skipped; the last: {}",
                            unreadable_, data_set_.size(), most, problem.message()));
}

bool Loader::is_skipped(std::int32_t sample) {
  const std::lock_guard lock(mutex_);
  return skipped_.count(sample) > 0;
}

bool Loader::is_read(std::int32_t sample) {
  const std::lock_guard lock(mutex_);
  return read_[static_cast<std::size_t>(sample)];
}

void Loader::note_read(std::int32_t sample) {
  const std::lock_guard lock(mutex_);
  read_[static_cast<std::size_t>(sample)] = true;
}

std::string Loader::skipped_names() {
  const std::lock_guard lock(mutex_);
  std::string names;
  for (const std::int32_t sample : skipped_) names += data_set_.describe(sample) + '\0';
  return names;
}

std::vector<std::string> Loader::take_skipped() {
  const std::lock_guard lock(mutex_);
  return std::exchange(skipped_words_, {});
}

void Loader::record_error(const Piece& piece, int place, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slot_of(piece.batch);
  if (slot.error && slot.broken < place) return;
  slot.error = std::move(error);
  slot.broken = place;
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
