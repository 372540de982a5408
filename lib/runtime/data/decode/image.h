// Pixels in memory: what decoders give, and the size that a data set promises.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "job/spec/data_set_facts.h"

namespace fleetrun::runtime {

struct ImageShape {
  int channels = 0;
  int height = 0;
  int width = 0;

  std::size_t elements() const {
    return static_cast<std::size_t>(channels) * static_cast<std::size_t>(height) *
           static_cast<std::size_t>(width);
  }
  bool operator==(const ImageShape&) const = default;
};

// Rows from the top, a row's pixels from the left, a pixel's channels side by side.
struct Image {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;
  int source_width = 0, source_height = 0;  // of the picture, before a decoder made it smaller
  int whole_width = 0, whole_height = 0;    // of the picture as it was decoded
  int left = 0, top = 0;  // where in that these pixels lie; a decoder may leave out what is not shown

  // Makes room for pixels of this shape, which are the whole picture.
  void reset(const ImageShape& of);
};

// A rectangle of an image, in pixels.
struct Region {
  double left = 0, top = 0, width = 0, height = 0;
  bool operator==(const Region&) const = default;
};

constexpr std::int64_t kMaxPixels = job::kMostPixels;

// Throws Error(data) that names `file` when an image of this size is empty or above kMaxPixels.
void check_image_size(const std::string& file, std::int64_t width, std::int64_t height);

// Buffers that fit_image keeps from call to call.
struct FitScratch {
  std::vector<std::uint8_t> colours;  // of what becomes grey
  std::vector<float> row;             // two source rows mixed, as far as the region reaches
  std::vector<int> left, right;       // where in that row the two neighbours of each pixel begin
  std::vector<float> weight;          // of the right one
};

// Brings a region (in pixels of the source; the image has what it needs) of an image to `shape`, plane after plane: bilinear when the size differs; of images with 1 or
// 3 channels grey is copied into three channels, colours become luma (ITU-R BT.601).
void fit_image(const Image& image, const Region& region, const ImageShape& shape, FitScratch& scratch,
               std::uint8_t* planes);

}  // namespace fleetrun::runtime
