// The memory of the batches that a loader makes, and what is still missing in each.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "runtime/data/augment.h"
#include "runtime/data/decode/image.h"
#include "runtime/data/order/epoch_progress.h"

namespace fleetrun::runtime {

// What a batch has of its images.
enum class ImageForm : std::uint8_t {
  numbers,  // normalised, for a network
  pixels,   // bytes, and the view of each image, for the op crop_mirror_normalize
};

// One batch, alive until the next one is asked for.
struct Batch {
  float* images = nullptr;  // [batch, channels, height, width], 64-byte aligned; null with ImageForm::pixels
  std::uint8_t* pixels = nullptr;  // of the same shape; null with ImageForm::numbers
  ViewNumbers* views = nullptr;    // [batch], with the pixels
  std::int32_t* labels = nullptr;  // [batch], -1 where there is no sample; the image there is zero
  int samples = 0;                 // places that hold a sample
};

// Batch k uses slot k modulo their number. It has no lock of its own.
class BatchRing {
 public:
  // Takes all memory that batches will ever need. Throws Error(os) without it.
  BatchRing(const ImageShape& shape, int batch, int slots, ImageForm form);

  int slots() const { return static_cast<int>(slots_.size()); }

  void clear();            // no slot holds a batch
  void begin(int number);  // its slot holds this batch from now on, and all of its samples are pending
  void finish(const Piece& piece, int samples);
  void record_error(const Piece& piece, int place,
                    std::exception_ptr error);  // keeps that of the first place

  bool is_complete(int number) const;
  const Batch& batch(int number) const { return slot_of(number).batch; }
  const std::exception_ptr& error(int number) const { return slot_of(number).error; }

 private:
  struct Slot {
    Batch batch;
    int number = -1;  // of the batch that it holds
    int pending = 0;  // samples that are still to come
    int broken = 0;   // position of the first sample that could not be read
    std::exception_ptr error;
  };
  struct AlignedDelete {
    void operator()(std::byte* memory) const;
  };

  const Slot& slot_of(int number) const { return slots_[static_cast<std::size_t>(number) % slots_.size()]; }
  Slot& slot_of(int number) { return slots_[static_cast<std::size_t>(number) % slots_.size()]; }

  const int batch_;  // samples
  std::unique_ptr<std::byte[], AlignedDelete> images_;
  std::vector<ViewNumbers> views_;
  std::vector<std::int32_t> labels_;
  std::vector<Slot> slots_;
};

}  // namespace fleetrun::runtime
