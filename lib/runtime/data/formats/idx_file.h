// One IDX file of unsigned bytes, as MNIST is kept in: read whole, plain or gzipped.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::runtime {

struct IdxFile {
  std::vector<int> dimensions;
  std::vector<std::uint8_t> content;  // their product
};

// Throws Error(missing|permission|io), and Error(data) that names the file when its gzip stream is broken,
// its magic number is not that of `dimensions` dimensions of unsigned bytes, or it has fewer or more bytes
// than it says.
IdxFile read_idx_file(const std::string& path, int dimensions);

}  // namespace fleetrun::runtime
