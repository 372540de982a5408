// The models that a job can name: each adds its layers to a program.
#pragma once
#include <array>

#include "job/spec/job_spec.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// What a model needs to know, the data set's answers filled in.
struct ModelFacts {
  std::array<int, 3> input_shape{};  // [C,H,W]
  int classes = 0;
};

// image [N,C,H,W] -> logits [N,classes]. Throws Error(config) for a model that this build does not have, and
// for an input too small for it.
ValueId build_model(Builder& builder, const job::ModelSpec& model, const ModelFacts& facts, ValueId image,
                    bool training);

}  // namespace fleetrun::runtime
