// One function per model; model.cpp has the table.
#pragma once
#include "runtime/models/model.h"

namespace fleetrun::runtime {

struct ModelRequest {
  const job::ModelSpec& spec;
  ModelFacts facts;
  ValueId image = kNone;
  bool training = true;
};

ValueId build_mlp(Builder& builder, const ModelRequest& request);
ValueId build_lenet(Builder& builder, const ModelRequest& request);

}  // namespace fleetrun::runtime
