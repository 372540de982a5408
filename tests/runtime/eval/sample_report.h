// A small report for the tests of what is made of one.
#pragma once
#include "runtime/eval/eval_report.h"

namespace fleetrun::runtime {

// 4 of 5 images are right.
inline EvalReport sample_report() {
  return make_report(
      {.model = "out/model.safetensors", .data = "photos/test", .classes = {"cat", "a <b>, \"c\"", "elk"}},
      {.loss = 0.75, .acc1 = 0.8, .samples = 5},
      {{.sample = 0, .label = 0, .predicted = 0, .loss = 0.25F, .probability = 0.75F},
       {.sample = 1, .label = 0, .predicted = 0, .loss = 0.125F, .probability = 0.875F},
       {.sample = 2, .label = 0, .predicted = 1, .loss = 3, .probability = 0.9375F},
       {.sample = 3, .label = 1, .predicted = 1, .loss = 0.5F, .probability = 0.625F},
       {.sample = 4, .label = 1, .predicted = 1, .loss = 0.5F, .probability = 0.625F}},
      {"cat/0.jpg", "cat/1.jpg", "cat/2,5.jpg", "b/3.jpg", "b/4.jpg"});
}

}  // namespace fleetrun::runtime
