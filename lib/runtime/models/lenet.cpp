#include "runtime/models/layers.h"
#include "runtime/models/models.h"

namespace fleetrun::runtime {

// conv 5x5x32, relu, max-pool 2, conv 5x5x64, relu, max-pool 2, fc 512, relu, fc: parameters c1, c2, f1, f2.
ValueId build_lenet(Builder& builder, const ModelRequest& request) {
  ValueId x = conv_layer(builder, "c1", request.image, {.channels = 32, .kernel = 5, .padding = 2});
  x = relu_layer(builder, "relu1", x);
  x = max_pool_layer(builder, "pool1", x);
  x = conv_layer(builder, "c2", x, {.channels = 64, .kernel = 5, .padding = 2});
  x = relu_layer(builder, "relu2", x);
  x = max_pool_layer(builder, "pool2", x);
  x = fc_layer(builder, "f1", x, 512);
  x = relu_layer(builder, "relu3", x);
  x = dropout_layer(builder, "dropout", x, request.spec.dropout, request.training);
  return fc_layer(builder, "f2", x, request.facts.classes);
}

}  // namespace fleetrun::runtime
