#include "runtime/data/batch_ring.h"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest vector register

// Bytes, so that each batch is aligned.
std::size_t batch_stride(const ImageShape& shape, int batch, std::size_t element) {
  const std::size_t bytes = shape.elements() * static_cast<std::size_t>(batch) * element;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void BatchRing::AlignedDelete::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t{kAlignment});
}

BatchRing::BatchRing(const ImageShape& shape, int batch, int slots, ImageForm form) : batch_(batch) {
  const bool numbers = form == ImageForm::numbers;
  const auto count = static_cast<std::size_t>(slots);
  const auto samples = static_cast<std::size_t>(batch);
  const std::size_t stride = batch_stride(shape, batch, numbers ? sizeof(float) : sizeof(std::uint8_t));
  try {
    images_.reset(new (std::align_val_t{kAlignment}) std::byte[stride * count]);
    if (!numbers) views_.resize(samples * count);
    labels_.resize(samples * count);
    slots_.resize(count);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::os, fmt::format("no memory for {} batches of {} bytes", count, stride),
                "lower data.prefetch or data.batch_size");
  }
  for (std::size_t i = 0; i < count; ++i) {
    Batch& batch_here = slots_[i].batch;
    batch_here.labels = &labels_[i * samples];
    std::byte* const images = &images_[i * stride];
    if (numbers) {
      batch_here.images = reinterpret_cast<float*>(images);
    } else {
      batch_here.pixels = reinterpret_cast<std::uint8_t*>(images);
      batch_here.views = &views_[i * samples];
    }
  }
}

void BatchRing::clear() {
  for (Slot& slot : slots_) slot.number = -1;
}

void BatchRing::begin(int number) {
  Slot& slot = slot_of(number);
  slot.number = number;
  slot.pending = batch_;
  slot.batch.samples = 0;
  slot.error = nullptr;
}

void BatchRing::finish(const Piece& piece, int samples) {
  Slot& slot = slot_of(piece.batch);
  slot.batch.samples += samples;
  slot.pending -= piece.last - piece.first;
}

void BatchRing::record_error(const Piece& piece, int place, std::exception_ptr error) {
  Slot& slot = slot_of(piece.batch);
  if (slot.error && slot.broken < place) return;
  slot.error = std::move(error);
  slot.broken = place;
}

bool BatchRing::is_complete(int number) const {
  const Slot& slot = slot_of(number);
  return slot.number == number && slot.pending == 0;
}

}  // namespace fleetrun::runtime
