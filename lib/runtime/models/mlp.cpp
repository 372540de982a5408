#include <fmt/format.h>

#include "runtime/models/layers.h"
#include "runtime/models/models.h"

namespace fleetrun::runtime {

// fc + relu for each hidden width, then fc: parameters f1, f2, ...
ValueId build_mlp(Builder& builder, const ModelRequest& request) {
  ValueId x = request.image;
  int layer = 1;
  for (const int width : request.spec.hidden) {
    x = fc_layer(builder, fmt::format("f{}", layer), x, width);
    x = relu_layer(builder, fmt::format("relu{}", layer), x);
    ++layer;
  }
  x = dropout_layer(builder, "dropout", x, request.spec.dropout, request.training);
  return fc_layer(builder, fmt::format("f{}", layer), x, request.facts.classes);
}

}  // namespace fleetrun::runtime
