// Tries the decoders of images with files that no camera writes, for some time:
//   images_fuzz [--seconds N] [--seed N]
// Each file is decoded, or refused with an Error(data) that names it; nothing else. With clang's libFuzzer (scripts/soak fuzz) it has no
// main of its own.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/decode/image_decoder.h"

namespace fleetrun::fuzz {
namespace {

constexpr std::string_view kName = "fuzz.jpg";

void must(bool holds, const std::string& what) {
  if (holds) return;
  fmt::print(stderr, "broken: {}\n", what);
  std::abort();
}

}  // namespace

void try_image(std::span<const std::uint8_t> bytes) {
  static runtime::ImageDecoder decoder;
  static runtime::Image image;
  const auto probed = decoder.probe(bytes);
  try {
    decoder.decode(bytes, std::string(kName), {.framing = {.to_the_end = true}, .shape = {3, 8, 8}}, image);
  } catch (const Error& error) {
    must(error.kind() == ErrorKind::data, error.message());
    must(error.message().starts_with(kName), error.message());
    return;
  }
  must(image.pixels.size() == image.shape.elements(), "an image has other pixels than its shape says");
  must(probed.has_value(), "an image was decoded whose size could not be read");
  must(probed->width == image.source_width && probed->height == image.source_height,
       fmt::format("a file that starts with {:02x} {:02x}: its header says {}x{} pixels, decoded are {}x{}",
                   bytes[0], bytes[1], probed->width, probed->height, image.source_width,
                   image.source_height));
}

}  // namespace fleetrun::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fleetrun::fuzz::try_image({data, size});
  return 0;
}

#ifndef FLEETRUN_LIBFUZZER
#include "fuzz/mutate.h"
#include "runtime/data/image_files.h"

namespace {

std::vector<std::string> images() {
  using namespace fleetrun::runtime;
  const Image image = noisy_image(3, 9, 13);
  std::vector<std::string> files = {make_jpeg(image),
                                    make_jpeg(image, TJFLAG_PROGRESSIVE),
                                    make_png(image),
                                    make_webp(image),
                                    with_webp_orientation(make_webp(image), image.shape, 6),
                                    with_orientation(make_jpeg(image), 6, true)};
  for (const int bits : {1, 4, 8, 24, 32}) files.push_back(make_bmp(image, {.bits = bits}));
  files.push_back(make_bmp(image, {.bits = 32, .from_top = true, .has_masks = true}));
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 600;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--seconds") seconds = std::atof(argv[i + 1]);
    if (std::string_view(argv[i]) == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  fleetrun::fuzz::Mutator mutator(seed, images());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t count = 0;
  for (; std::chrono::steady_clock::now() < end; ++count) {
    const std::string file = mutator.next();
    fleetrun::fuzz::try_image({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
  }
  fmt::print("{} images\n", count);
  return 0;
}
#endif
