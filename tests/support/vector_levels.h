// Runs something at every level of vector instructions that this process may use, from the least on.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "base/number/vector_level.h"

namespace fleetrun::test {

template <typename Body>
void at_every_level(Body&& body) {
  struct Restored {
    VectorLevel before = vector_level();
    ~Restored() { limit_vector_level(before); }
  };
  const Restored restored;
  for (const VectorLevel level :
       {VectorLevel::baseline, VectorLevel::avx2, VectorLevel::avx512, VectorLevel::avx512_bf16}) {
    if (level > restored.before) return;
    limit_vector_level(level);
    INFO("level " << std::string(describe(level)));
    body();
  }
}

}  // namespace fleetrun::test
