// A typed piece of memory that somebody else owns: what collectives and kernels work on.
#pragma once
#include <cstddef>

#include "base/number/dtype.h"

namespace fleetrun {

struct BufferView {
  void* data = nullptr;
  std::size_t count = 0;  // elements
  DType dtype = DType::f32;

  std::size_t bytes() const { return count * size_of(dtype); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace fleetrun
