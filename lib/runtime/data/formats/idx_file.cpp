#include "runtime/data/formats/idx_file.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "runtime/data/formats/gzip_file.h"

namespace fleetrun::runtime {
namespace {

constexpr std::uint32_t kBytesMagic = 0x0800;  // LeCun, "The IDX file format": type 8 is unsigned bytes
constexpr std::size_t kMaxContent = std::size_t{1} << 34;  // 16 GiB: a longer one belongs in image files
constexpr std::size_t kPiece = std::size_t{1} << 24;       // memory is taken as bytes arrive, not as promised

std::uint32_t read_number(GzipFile& file, const std::string& path) {
  std::array<std::uint8_t, 4> bytes{};
  if (file.read(bytes.data(), bytes.size()) != bytes.size())
    throw Error(ErrorKind::data, fmt::format("{}: the file ends within its header", path));
  return std::uint32_t{bytes[0]} << 24U | std::uint32_t{bytes[1]} << 16U | std::uint32_t{bytes[2]} << 8U |
         std::uint32_t{bytes[3]};
}

std::size_t read_dimensions(GzipFile& file, const std::string& path, int count,
                            std::vector<int>& dimensions) {
  std::size_t total = 1;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t dimension = read_number(file, path);
    const auto largest = static_cast<std::uint32_t>(std::numeric_limits<int>::max());
    if (dimension == 0 || dimension > largest || dimension > kMaxContent / total)
      throw Error(
          ErrorKind::data,
          fmt::format("{}: dimension {} of the header is {}, wanted 1 or more and at most {} bytes in all",
                      path, i, dimension, kMaxContent));
    total *= dimension;
    dimensions.push_back(static_cast<int>(dimension));
  }
  return total;
}

}  // namespace

IdxFile read_idx_file(const std::string& path, int dimensions) {
  GzipFile file(path);
  const std::uint32_t magic = read_number(file, path);
  const std::uint32_t wanted = kBytesMagic + static_cast<std::uint32_t>(dimensions);
  if (magic != wanted)
    throw Error(ErrorKind::data,
                fmt::format("{}: the magic number is 0x{:08x}, wanted 0x{:08x} (unsigned bytes in {})", path,
                            magic, wanted, plural(dimensions, "dimension")));
  IdxFile idx;
  const std::size_t total = read_dimensions(file, path, dimensions, idx.dimensions);
  while (idx.content.size() < total) {
    const std::size_t before = idx.content.size();
    idx.content.resize(std::min(total, before + kPiece));
    const std::size_t got = file.read(idx.content.data() + before, idx.content.size() - before);
    if (before + got < idx.content.size())
      throw Error(ErrorKind::data, fmt::format("{}: the header promises {} bytes, the file has {}", path,
                                               total, before + got));
  }
  std::uint8_t more = 0;  // the read at the end also checks the stream's checksum
  if (file.read(&more, 1) != 0)
    throw Error(ErrorKind::data,
                fmt::format("{}: the file has more than the {} bytes of its header", path, total));
  return idx;
}

}  // namespace fleetrun::runtime
