#include "runtime/data/batch_ring.h"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest vector register

std::size_t batch_stride(const ImageShape& shape, int batch) {  // floats, so that each batch is aligned
  constexpr std::size_t kFloats = kAlignment / sizeof(float);
  const std::size_t floats = shape.elements() * static_cast<std::size_t>(batch);
  return (floats + kFloats - 1) / kFloats * kFloats;
}

}  // namespace

void BatchRing::AlignedDelete::operator()(float* memory) const {
  ::operator delete[](memory, std::align_val_t{kAlignment});
}

BatchRing::BatchRing(const ImageShape& shape, int batch, int slots) : batch_(batch) {
  const auto count = static_cast<std::size_t>(slots);
  const auto labels = static_cast<std::size_t>(batch);
  const std::size_t stride = batch_stride(shape, batch);
  try {
    images_.reset(new (std::align_val_t{kAlignment}) float[stride * count]);
    labels_.resize(labels * count);
    slots_.resize(count);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::os,
                fmt::format("no memory for {} batches of {} bytes", count, stride * sizeof(float)),
                "lower data.prefetch or data.batch_size");
  }
  for (std::size_t i = 0; i < count; ++i) slots_[i].batch = {&images_[i * stride], &labels_[i * labels], 0};
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
