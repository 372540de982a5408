#include "runtime/data/formats/gzip_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

constexpr std::array<std::uint8_t, 2> kMagic = {0x1f, 0x8b};  // RFC 1952, section 2.3.1
constexpr int kGzipWrapper = 15 + 16;                         // zlib.h, inflateInit2
constexpr std::size_t kInputBytes = std::size_t{1} << 16;     // read at a time
constexpr std::size_t kMostInflated = std::size_t{1} << 24;   // at a time; zlib counts in 32 bits

bool begins_stream(const std::uint8_t* bytes, std::size_t count) {
  return count >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes);
}

}  // namespace

GzipFile::GzipFile(std::string path) : path_(std::move(path)), file_(open_data_file(path_)) {
  std::array<std::uint8_t, kMagic.size()> start{};
  is_gzip_ = begins_stream(start.data(), read_at(file_.fd, path_, 0, start.size(), start.data()));
  if (!is_gzip_) return;
  input_.resize(kInputBytes);
  stream_.next_in = input_.data();
  if (::inflateInit2(&stream_, kGzipWrapper) != Z_OK)
    throw Error(ErrorKind::os, fmt::format("opening {}: out of memory", path_));
  is_in_stream_ = true;
}

GzipFile::~GzipFile() {
  if (is_gzip_) ::inflateEnd(&stream_);
}

std::size_t GzipFile::read(std::uint8_t* bytes, std::size_t count) {
  if (!is_gzip_) {
    const std::size_t got = read_at(file_.fd, path_, offset_, count, bytes);
    offset_ += got;
    return got;
  }
  std::size_t filled = 0;
  while (filled < count && (is_in_stream_ || begin_stream())) {
    const std::size_t wanted = std::min(count - filled, kMostInflated);
    stream_.next_out = bytes + filled;
    stream_.avail_out = static_cast<uInt>(wanted);
    inflate_some();
    filled += wanted - stream_.avail_out;
  }
  return filled;
}

void GzipFile::inflate_some() {
  switch (::inflate(&stream_, Z_NO_FLUSH)) {
    case Z_STREAM_END:
      is_in_stream_ = false;
      ::inflateReset(&stream_);
      return;
    case Z_OK:
    case Z_BUF_ERROR:  // it needs more input
      if (stream_.avail_in == 0 && stream_.avail_out > 0 && !refill())
        throw Error(ErrorKind::data, fmt::format("{}: the gzip stream is truncated", path_));
      return;
    case Z_MEM_ERROR:
      throw Error(ErrorKind::os, fmt::format("reading {}: out of memory", path_));
    default:
      throw Error(ErrorKind::data,
                  fmt::format("{}: broken gzip stream: {}", path_,
                              stream_.msg != nullptr ? stream_.msg : "it needs a dictionary"));
  }
}

// Adds bytes of the file to the input that is left. False: there are none.
bool GzipFile::refill() {
  std::copy_n(stream_.next_in, stream_.avail_in, input_.data());
  stream_.next_in = input_.data();
  const std::size_t got =
      read_at(file_.fd, path_, offset_, input_.size() - stream_.avail_in, input_.data() + stream_.avail_in);
  offset_ += got;
  stream_.avail_in += static_cast<uInt>(got);
  return got > 0;
}

// Goes to the next stream. False: the file ends before one.
bool GzipFile::begin_stream() {
  if (stream_.avail_in < kMagic.size()) refill();
  is_in_stream_ = begins_stream(stream_.next_in, stream_.avail_in);
  if (is_in_stream_) return true;
  do {
    for (; stream_.avail_in > 0; ++stream_.next_in, --stream_.avail_in)
      if (*stream_.next_in != 0)
        throw Error(ErrorKind::data,
                    fmt::format("{}: the gzip stream ends, and other data follows from byte {} on", path_,
                                offset_ - stream_.avail_in));
  } while (refill());
  return false;
}

}  // namespace fleetrun::runtime
