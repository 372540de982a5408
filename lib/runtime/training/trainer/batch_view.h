// The samples of a step or an evaluation on their way from a loader to a program.
#pragma once
#include <cstdint>

#include "runtime/data/batch_ring.h"
#include "runtime/exec/executor.h"

namespace fleetrun::runtime {

// One batch in plain memory. Its owner keeps it until the step is done. It has its images in the form that the program
// takes: as numbers, or as pixels with their views.
struct BatchView {
  const float* images = nullptr;         // [B,C,H,W]
  const std::int32_t* labels = nullptr;  // [B], -1: no sample
  const float* weights = nullptr;        // [B], with data.class_weights; Trainer::step() sets it
  const std::uint8_t* pixels = nullptr;  // [B,C,H,W]
  const ViewNumbers* views = nullptr;    // [B]
};

// All samples that a loader has put into a batch.
inline BatchView view_of(const Batch& batch) {
  return {.images = batch.images, .labels = batch.labels, .pixels = batch.pixels, .views = batch.views};
}

// Those from place `first` on. `elements`: of one image.
BatchView samples_from(const BatchView& batch, std::int64_t first, std::int64_t elements);

// Gives the samples to the feeds of micro-batch `number` of `count`, those that the program has: a stage of a pipeline
// may read no images, or no labels.
void bind_samples(Executor& executor, const BatchView& samples, int number = 0, int count = 1);

}  // namespace fleetrun::runtime
