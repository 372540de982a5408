// Which part of an image a sample shows: the augmentation chooses it from the size of the image, and it is brought to
// the data set's shape.
#pragma once
#include <cstdint>
#include <optional>

#include "job/spec/job_spec.h"
#include "runtime/data/decode/image.h"
#include "runtime/data/order/sample_random.h"

namespace fleetrun::runtime {

struct Framing {
  job::Augment augment = job::Augment::none;
  std::int64_t seed = 1;
  int epoch = 0;
  std::int32_t sample = 0;
  // The place of the sample in the epoch. Only set if a sample can come several times.
  std::optional<std::int64_t> place = std::nullopt;
  bool to_the_end = false;  // damage is looked for in all of the file, though less of it is shown
};

// The random numbers of the sample, or of its place.
SampleRandom random_of(const Framing& framing, RandomUse use);

// What a decoder may know of the use of its image.
struct Wanted {
  Framing framing;
  ImageShape shape;  // of the data set
};

// Of an image of this size, in its pixels; `shape` is what the region becomes.
//   none, crop_flip       everything
//   resize_crop           the middle of the image when its short side is 256/224 of shape's longer side
//   random_resized_crop   8 % to 100 % of the area, sides as 3:4 to 4:3, anywhere (Szegedy et al. 2014, arXiv:1409.4842, section 6;
//                         ten tries, then the middle, as torchvision has it)
Region region_of(const Framing& framing, int width, int height, const ImageShape& shape);

// The image may be decoded 1, 2, 4 or 8 times smaller on each side, and the region has still the pixels of the shape.
int reduction_of(const Wanted& wanted, int width, int height);

}  // namespace fleetrun::runtime
