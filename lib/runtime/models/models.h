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
ValueId build_resnet20(Builder& builder, const ModelRequest& request);
ValueId build_resnet(Builder& builder, const ModelRequest& request);  // 18, 34, 50, 101, 152
ValueId build_vgg16(Builder& builder, const ModelRequest& request);
ValueId build_mobilenet_v1(Builder& builder, const ModelRequest& request);

}  // namespace fleetrun::runtime
