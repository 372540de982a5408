#include "runtime/data/jpeg_decoder.h"

#include <turbojpeg.h>

#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/data/exif_orientation.h"

namespace fleetrun::runtime {
namespace {

// libjpeg-turbo warns, and decodes, when bytes lie between two segments; some cameras write such files.
bool is_harmless(tjhandle handle) {
  return tjGetErrorCode(handle) == TJERR_WARNING &&
         std::strstr(tjGetErrorStr2(handle), "extraneous bytes") != nullptr;
}

// Adobe's programs, which wrote nearly all CMYK files there are, store the inverse of the inks.
void inverted_cmyk_to_rgb(std::vector<std::uint8_t>& pixels) {
  const std::size_t count = pixels.size() / 4;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      pixels[3 * i + c] = static_cast<std::uint8_t>((pixels[4 * i + c] * pixels[4 * i + 3] + 127) / 255);
  pixels.resize(3 * count);
}

int channels_of(int colour_space) {
  if (colour_space == TJCS_GRAY) return 1;
  return colour_space == TJCS_CMYK || colour_space == TJCS_YCCK ? 4 : 3;
}

int pixel_format(int channels) {
  if (channels == 1) return TJPF_GRAY;
  return channels == 4 ? TJPF_CMYK : TJPF_RGB;
}

}  // namespace

void JpegDecoder::Closer::operator()(void* handle) const { tjDestroy(handle); }

JpegDecoder::JpegDecoder() { start(); }

void JpegDecoder::start() {
  handle_.reset(tjInitDecompress());
  if (!handle_) throw Error(ErrorKind::os, "starting the JPEG decoder: out of memory");
}

std::string JpegDecoder::take_problem() {
  std::string problem = tjGetErrorStr2(handle_.get());
  start();
  return problem;
}

std::optional<ImageShape> JpegDecoder::read_header(std::span<const std::uint8_t> bytes,
                                                   std::string& problem) {
  ImageShape shape;
  int subsampling = 0, colour_space = 0;
  const int status = tjDecompressHeader3(handle_.get(), bytes.data(), bytes.size(), &shape.width,
                                         &shape.height, &subsampling, &colour_space);
  const bool failed = status != 0 && !is_harmless(handle_.get());
  if (failed || shape.width < 1 || shape.height < 1) {
    problem = take_problem();
    if (!failed) problem = "it ends before its image";  // tables alone are no error there
    return std::nullopt;
  }
  shape.channels = channels_of(colour_space);
  return shape;
}

std::optional<ImageShape> JpegDecoder::probe(std::span<const std::uint8_t> bytes) {
  std::string problem;
  return read_header(bytes, problem);
}

void JpegDecoder::decode(std::span<const std::uint8_t> bytes, const std::string& file, const Wanted& wanted,
                         Image& image) {
  std::string problem;
  const auto check = [&](bool good) {
    if (!good) throw Error(ErrorKind::data, fmt::format("{}: broken JPEG file: {}", file, problem));
  };
  const std::optional<ImageShape> shape = read_header(bytes, problem);
  check(shape.has_value());
  check_image_size(file, shape->width, shape->height);
  const int orientation = read_orientation(bytes);
  const tjscalingfactor scale = {1, is_transposed(orientation)
                                        ? reduction_of(wanted, shape->height, shape->width)
                                        : reduction_of(wanted, shape->width, shape->height)};
  image.reset({shape->channels, TJSCALED(shape->height, scale), TJSCALED(shape->width, scale)});
  image.source_width = shape->width;
  image.source_height = shape->height;
  const bool decoded = tjDecompress2(handle_.get(), bytes.data(), bytes.size(), image.pixels.data(),
                                     image.shape.width, 0, image.shape.height, pixel_format(shape->channels),
                                     TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) == 0 ||
                       is_harmless(handle_.get());
  if (!decoded) problem = take_problem();
  check(decoded);
  if (shape->channels == 4) {
    inverted_cmyk_to_rgb(image.pixels);
    image.shape.channels = 3;
  }
  make_upright(orientation, image);
}

}  // namespace fleetrun::runtime
