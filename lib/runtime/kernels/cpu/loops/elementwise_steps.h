// What elementwise ops do with one element: the op's own kernel and a group of ops do the same, to the bit.
#pragma once
#include "base/number/vector_clones.h"

namespace fleetrun::runtime::cpu {

FLEETRUN_VECTOR_LOOP float sum_of(float x, float y) { return x + y; }

FLEETRUN_VECTOR_LOOP float relu_of(float x) { return x < 0.0F ? 0.0F : x; }  // NaN stays NaN
FLEETRUN_VECTOR_LOOP float relu_grad_of(float y, float dy) { return y > 0.0F ? dy : 0.0F; }

FLEETRUN_VECTOR_LOOP float relu6_of(float x, float threshold) {
  const float above = relu_of(x);
  return above > threshold ? threshold : above;
}
FLEETRUN_VECTOR_LOOP float relu6_grad_of(float y, float dy, float threshold) {
  const float below = y < threshold ? dy : 0.0F;
  return y > 0.0F ? below : 0.0F;
}

FLEETRUN_VECTOR_LOOP float scale_of(float x, float scale, float bias) { return scale * x + bias; }

}  // namespace fleetrun::runtime::cpu
