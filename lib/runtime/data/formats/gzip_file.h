// The content of a file that may be gzipped: what the streams in it hold, or the bytes as they are.
#pragma once
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/formats/read_bytes.h"

namespace fleetrun::runtime {

// Gzip streams that follow each other are one (RFC 1952, section 2.2). Zeros may follow the last one, as gzip(1) allows for files from
// tapes.
class GzipFile {
 public:
  // Throws what open_data_file throws.
  explicit GzipFile(std::string path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Fewer than `count` only at the end of the content. Throws Error(io), and Error(data) when a gzip stream is broken, truncated, or
  // followed by other bytes.
  std::size_t read(std::uint8_t* bytes, std::size_t count);

 private:
  bool refill();
  bool begin_stream();
  void inflate_some();

  std::string path_;
  OpenedFile file_;
  std::size_t offset_ = 0;           // in the file, of the byte after those that were read
  std::vector<std::uint8_t> input_;  // of a gzip stream; stream_ has the place in it
  z_stream stream_{};
  bool is_gzip_ = false;
  bool is_in_stream_ = false;
};

}  // namespace fleetrun::runtime
