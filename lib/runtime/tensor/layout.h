// How the elements of a tensor lie in memory. Plain is row-major and dense; anything else is a device's
// own order (oneDNN's blocked formats, NHWC), which only that device's kernels can read.
#pragma once
#include <cstddef>
#include <string>

namespace fleetrun::runtime {

struct Layout {
  std::string name;        // as people say it: "nChw16c"; empty = plain
  std::string descriptor;  // the device's own description, compared byte by byte
  std::size_t bytes = 0;   // of the whole tensor, padding included; 0 when plain

  bool plain() const { return name.empty(); }
  bool operator==(const Layout&) const = default;
};

}  // namespace fleetrun::runtime
