#include "runtime/data/decode/jpeg_decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <vector>

#include <jpeglib.h>  // before its companion, which uses its names

#include <jerror.h>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/decode/exif_orientation.h"

namespace fleetrun::runtime {
namespace {

constexpr int kMostScans =
    500;  // of a progressive file; one with millions takes minutes (libjpeg-turbo's own fuzzers)
// Decoded around the region: a pixel at the edge of what is decoded has no neighbour to blend its colour with.
constexpr int kMargin = 3;

// Adobe's programs, which wrote nearly all CMYK files there are, store the inverse of the inks.
void inverted_cmyk_to_rgb(std::vector<std::uint8_t>& pixels) {
  const std::size_t count = pixels.size() / 4;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      pixels[3 * i + c] = static_cast<std::uint8_t>((pixels[4 * i + c] * pixels[4 * i + 3] + 127) / 255);
  pixels.resize(3 * count);
}

int channels_of(J_COLOR_SPACE colour_space) {
  if (colour_space == JCS_GRAYSCALE) return 1;
  return colour_space == JCS_CMYK || colour_space == JCS_YCCK ? 4 : 3;
}

J_COLOR_SPACE colour_space_of(int channels) {
  if (channels == 1) return JCS_GRAYSCALE;
  return channels == 4 ? JCS_CMYK : JCS_RGB;
}

constexpr int kMostReduction = 8;

// The pixels [first, first + count) of one axis that a region needs, when `source` pixels were decoded to `size`.
struct Part {
  JDIMENSION first = 0, count = 0;
};

Part part_of(double first, double length, int source, JDIMENSION size) {
  const double scale = static_cast<double>(size) / source;
  const auto inside = [&](double position) { return std::clamp(position, 0.0, static_cast<double>(size)); };
  const double begin = inside(std::floor(first * scale) - kMargin);
  const double end = inside(std::ceil((first + length) * scale) + kMargin);
  return {static_cast<JDIMENSION>(begin), static_cast<JDIMENSION>(end - begin)};
}

// Makes room for the part of a picture that was decoded to the size of `whole`.
void begin_image(const ImageShape& stored, const ImageShape& whole, const Part& columns, const Part& rows,
                 Image& image) {
  image.reset({stored.channels, static_cast<int>(rows.count), static_cast<int>(columns.count)});
  image.source_width = stored.width;
  image.source_height = stored.height;
  image.whole_width = whole.width;
  image.whole_height = whole.height;
  image.left = static_cast<int>(columns.first);
  image.top = static_cast<int>(rows.first);
}

// The marker EOI, which a file that was cut off lacks.
bool has_end(std::span<const std::uint8_t> bytes) {
  constexpr std::array<std::uint8_t, 2> kEndOfImage = {0xff, 0xd9};
  return std::find_end(bytes.begin(), bytes.end(), kEndOfImage.begin(), kEndOfImage.end()) != bytes.end();
}

// Nearly all photographs are so: one scan of all channels, Huffman codes, 8 bits.
bool is_usual(const jpeg_decompress_struct& jpeg) {
  return jpeg.progressive_mode == FALSE && jpeg.arith_code == FALSE && jpeg.data_precision == 8 &&
         jpeg.comps_in_scan == jpeg.num_components &&
         (jpeg.jpeg_color_space == JCS_YCbCr || jpeg.jpeg_color_space == JCS_GRAYSCALE);
}

}  // namespace

struct JpegDecoder::Codec {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf back{};
  std::array<char, JMSG_LENGTH_MAX> problem{};

  Codec();
  ~Codec() { jpeg_destroy_decompress(&jpeg); }
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  // False when libjpeg gave up within `work`, which must own nothing: libjpeg leaves it by longjmp. `problem` then says why,
  // and the next image starts anew.
  template <typename Work>
  bool guarded(const Work& work) {
    if (setjmp(back) != 0) {  // NOLINT(cert-err52-cpp): libjpeg's way to report errors
      jpeg_abort_decompress(&jpeg);
      return false;
    }
    work();
    return true;
  }
  bool read_header(std::span<const std::uint8_t> bytes);
  // All pixels, or those that a region (in pixels of the file) needs; to_the_end: the others are looked at, too.
  bool read_pixels(int reduction, const Region* region, bool to_the_end, Image& image);

 private:
  static Codec& of(j_common_ptr jpeg) { return *static_cast<Codec*>(jpeg->client_data); }
  [[noreturn]] void give_up() { std::longjmp(back, 1); }  // NOLINT(cert-err52-cpp)
  void read_rows(const Part& rows, Image& image);
  void read_rest();
  void end_early();

  std::vector<std::uint8_t> last_row_;  // of which nothing is shown
};

JpegDecoder::Codec::Codec() {
  jpeg.err = jpeg_std_error(&errors);
  jpeg.client_data = this;
  errors.error_exit = [](j_common_ptr common) {
    common->err->format_message(common, of(common).problem.data());
    of(common).give_up();
  };
  // A warning means that what follows is made up. Bytes between two segments are harmless; some cameras write them.
  errors.emit_message = [](j_common_ptr common, int level) {
    if (level < 0 && common->err->msg_code != JWRN_EXTRANEOUS_DATA) common->err->error_exit(common);
  };
  errors.output_message = [](j_common_ptr) {};
  progress.progress_monitor = [](j_common_ptr common) {
    Codec& codec = of(common);
    if (codec.jpeg.input_scan_number <= kMostScans) return;
    std::snprintf(codec.problem.data(), codec.problem.size(), "it has more than %d scans", kMostScans);
    codec.give_up();
  };
  if (!guarded([this] { jpeg_create_decompress(&jpeg); }))
    throw Error(ErrorKind::os, fmt::format("starting the JPEG decoder: {}", problem.data()));
  jpeg.progress = &progress;
}

bool JpegDecoder::Codec::read_header(std::span<const std::uint8_t> bytes) {
  jpeg_abort_decompress(&jpeg);  // the image before it, of which maybe only the header was read
  return guarded([&] {
    jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
  });
}

bool JpegDecoder::Codec::read_pixels(int reduction, const Region* region, bool to_the_end, Image& image) {
  const int channels = channels_of(jpeg.jpeg_color_space);
  const auto width = static_cast<int>(jpeg.image_width), height = static_cast<int>(jpeg.image_height);
  int whole_width = 0;
  Part columns, rows;
  const bool started = guarded([&] {
    jpeg.out_color_space = colour_space_of(channels);
    jpeg.scale_num = 1;
    jpeg.scale_denom = static_cast<unsigned>(reduction);
    jpeg.dct_method = JDCT_ISLOW;  // the accurate one
    jpeg_start_decompress(&jpeg);
    whole_width = static_cast<int>(jpeg.output_width);
    columns = {0, jpeg.output_width};
    rows = {0, jpeg.output_height};
    if (region == nullptr) return;
    columns = part_of(region->left, region->width, width, jpeg.output_width);
    rows = part_of(region->top, region->height, height, jpeg.output_height);
    if (columns.count < jpeg.output_width) jpeg_crop_scanline(&jpeg, &columns.first, &columns.count);
  });
  if (!started) return false;
  begin_image({channels, height, width}, {channels, static_cast<int>(jpeg.output_height), whole_width},
              columns, rows, image);
  last_row_.resize(image.pixels.size() / std::max<std::size_t>(1, rows.count));
  return guarded([&] {
    read_rows(rows, image);
    if (to_the_end) read_rest();
    if (jpeg.output_scanline == jpeg.output_height)
      jpeg_finish_decompress(&jpeg);
    else
      end_early();
  });
}

void JpegDecoder::Codec::read_rows(const Part& rows, Image& image) {
  constexpr std::size_t kRows = 4;  // the most that libjpeg makes at once
  const std::size_t row_bytes =
      static_cast<std::size_t>(image.shape.width) * static_cast<std::size_t>(image.shape.channels);
  if (rows.first > 0) jpeg_skip_scanlines(&jpeg, rows.first);
  std::uint8_t* to = image.pixels.data();
  for (JDIMENSION left = rows.count; left > 0;) {
    std::array<JSAMPROW, kRows> pointers{};
    for (std::size_t i = 0; i < kRows; ++i) pointers[i] = to + i * row_bytes;
    const JDIMENSION made = jpeg_read_scanlines(&jpeg, pointers.data(), std::min<JDIMENSION>(left, kRows));
    to += made * row_bytes;
    left -= made;
  }
}

// Decoded, but for what makes pixels of coefficients. libjpeg would leave out the last rows altogether if all were skipped.
void JpegDecoder::Codec::read_rest() {
  const JDIMENSION rest = jpeg.output_height - jpeg.output_scanline;
  if (rest > 1) jpeg_skip_scanlines(&jpeg, rest - 1);
  JSAMPROW row = last_row_.data();
  while (jpeg.output_scanline < jpeg.output_height) jpeg_read_scanlines(&jpeg, &row, 1);
}

// What lies below the region is not decoded, but a file that was cut off is to be told whatever part of it is seen.
void JpegDecoder::Codec::end_early() {
  const bool seen = jpeg_input_complete(&jpeg) != FALSE || jpeg.unread_marker == JPEG_EOI;
  if (!seen && !has_end({jpeg.src->next_input_byte, jpeg.src->bytes_in_buffer})) WARNMS(&jpeg, JWRN_JPEG_EOF);
  jpeg_abort_decompress(&jpeg);
}

JpegDecoder::JpegDecoder() : codec_(std::make_unique<Codec>()) {}
JpegDecoder::~JpegDecoder() = default;

std::optional<ImageShape> JpegDecoder::probe(std::span<const std::uint8_t> bytes) {
  if (!codec_->read_header(bytes)) return std::nullopt;
  const jpeg_decompress_struct& jpeg = codec_->jpeg;
  const ImageShape stored = {channels_of(jpeg.jpeg_color_space), static_cast<int>(jpeg.image_height),
                             static_cast<int>(jpeg.image_width)};
  return upright(stored, read_orientation(bytes));
}

void JpegDecoder::decode(std::span<const std::uint8_t> bytes, const std::string& file, const Wanted& wanted,
                         Image& image) {
  const auto check = [&](bool good) {
    if (!good)
      throw Error(ErrorKind::data, fmt::format("{}: broken JPEG file: {}", file, codec_->problem.data()));
  };
  check(codec_->read_header(bytes));
  const jpeg_decompress_struct& jpeg = codec_->jpeg;
  const auto width = static_cast<int>(jpeg.image_width), height = static_cast<int>(jpeg.image_height);
  check_image_size(file, width, height);
  const int orientation = read_orientation(bytes);
  const bool transposed = is_transposed(orientation);
  const int reduction = reduction_of(wanted, transposed ? height : width, transposed ? width : height);
  const Region shown = region_of(wanted.framing, width, height, wanted.shape);
  const Region* const region = orientation == kUpright ? &shown : nullptr;
  if (device_ && is_usual(jpeg) && has_end({jpeg.src->next_input_byte, jpeg.src->bytes_in_buffer})) {
    const ImageShape stored = {jpeg.num_components, height, width};
    if (wanted.framing.to_the_end) {  // the device would make up what a damaged file lacks
      constexpr Region kCorner = {0, 0, 1, 1};
      check(codec_->read_pixels(kMostReduction, &kCorner, true, image));
    }
    if (decode_on_device(bytes, stored, reduction, region, image)) {
      ++counts_->by_device;
      return make_upright(orientation, image);
    }
    check(codec_->read_header(bytes));
  }
  if (device_) ++counts_->by_cpu;
  check(codec_->read_pixels(reduction, region, wanted.framing.to_the_end, image));
  if (image.shape.channels == 4) {
    inverted_cmyk_to_rgb(image.pixels);
    image.shape.channels = 3;
  }
  make_upright(orientation, image);
}

bool JpegDecoder::decode_on_device(std::span<const std::uint8_t> bytes, const ImageShape& stored,
                                   int reduction, const Region* region, Image& image) {
  const auto smaller = [&](int size) { return (size + reduction - 1) / reduction; };
  const ImageShape whole = {stored.channels, smaller(stored.height), smaller(stored.width)};
  const auto width = static_cast<JDIMENSION>(whole.width), height = static_cast<JDIMENSION>(whole.height);
  const Part columns =
      region == nullptr ? Part{0, width} : part_of(region->left, region->width, stored.width, width);
  const Part rows =
      region == nullptr ? Part{0, height} : part_of(region->top, region->height, stored.height, height);
  begin_image(stored, whole, columns, rows, image);
  return device_->decode(bytes,
                         {.picture = stored,
                          .reduction = reduction,
                          .left = image.left,
                          .top = image.top,
                          .columns = image.shape.width,
                          .rows = image.shape.height},
                         image.pixels.data());
}

}  // namespace fleetrun::runtime
