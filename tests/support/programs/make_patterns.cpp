// make_patterns FOLDER: writes the generated image set as gzipped IDX files, as they lie in configs/patterns.
#include <zlib.h>

#include <cstdio>
#include <string>
#include <vector>

#include "support/patterns.h"

namespace {

using fleetrun::patterns::ImageSet;

void append_big_endian(std::vector<std::uint8_t>& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

// The header of an IDX file of unsigned bytes: 0, 0, type 8, the number of dimensions, and the dimensions.
std::vector<std::uint8_t> idx_file(const std::vector<std::uint32_t>& dimensions,
                                   const std::vector<std::uint8_t>& content) {
  std::vector<std::uint8_t> bytes;
  append_big_endian(bytes, 0x0800U + static_cast<std::uint32_t>(dimensions.size()));
  for (const std::uint32_t dimension : dimensions) append_big_endian(bytes, dimension);
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

bool write_gzip(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  gzFile file = gzopen(path.c_str(), "wb9");
  if (file == nullptr) return false;
  const bool whole =
      gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size());
  return gzclose(file) == Z_OK && whole;
}

bool write_set(const std::string& folder, const std::string& name, const ImageSet& set) {
  const auto count = static_cast<std::uint32_t>(set.labels.size());
  constexpr auto kSide = static_cast<std::uint32_t>(fleetrun::patterns::kSide);
  return write_gzip(folder + "/" + name + "-images.idx.gz", idx_file({count, kSide, kSide}, set.pixels)) &&
         write_gzip(folder + "/" + name + "-labels.idx.gz", idx_file({count}, set.labels));
}

}  // namespace

int main(int count, char** arguments) {
  namespace patterns = fleetrun::patterns;
  if (count != 2) {
    std::fprintf(stderr, "usage: make_patterns FOLDER\n");
    return 2;
  }
  const std::string folder = arguments[1];
  if (write_set(folder, "train", patterns::draw(patterns::kTrainSeed, patterns::kTrain)) &&
      write_set(folder, "test", patterns::draw(patterns::kTestSeed, patterns::kTest)))
    return 0;
  std::fprintf(stderr, "make_patterns: cannot write into %s\n", folder.c_str());
  return 73;
}
