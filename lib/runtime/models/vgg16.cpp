#include <array>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/models/layers.h"
#include "runtime/models/models.h"

namespace fleetrun::runtime {
namespace {

constexpr std::array<std::int64_t, 18> kFeatures = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                                                    0,  512, 512, 512, 0,   512, 512, 512, 0};  // 0: pool
constexpr std::int64_t kLastSide = 7;  // of the last feature map, which the classifier is made for
constexpr std::int64_t kHidden = 4096;

}  // namespace

// Simonyan and Zisserman 2014, arXiv:1409.1556, configuration D, as torchvision's vgg16: 13 convolutions 3x3 with
// relu, five max-pools, three fc. Parameters are numbered as there (features.0.weight, classifier.6.bias).
// The five pools leave 7 x 7 of sides of 224 to 255; what torchvision does with other sides is not built (its adaptive pool).
// torchvision drops half of the values twice; here model.dropout says how many.
ValueId build_vgg16(Builder& builder, const ModelRequest& request) {
  ValueId x = request.image;
  int number = 0;  // in torchvision's list, where relu and pool count too
  for (const std::int64_t channels : kFeatures) {
    const std::string name = fmt::format("features.{}", number);
    if (channels == 0) {
      x = max_pool_layer(builder, name, x);
      ++number;
      continue;
    }
    x = conv_layer(builder, name, x,
                   {.channels = channels, .kernel = 3, .padding = 1, .start = Start::fan_out});
    x = relu_layer(builder, fmt::format("features.{}", number + 1), x);
    number += 2;
  }
  const Shape& last = builder.program().value(x).shape;
  if (last[2] != kLastSide || last[3] != kLastSide)
    throw Error(ErrorKind::config,
                fmt::format("model.name: vgg16 wants images with sides of 224 to 255 pixels, found {} x {}",
                            request.facts.input_shape[1], request.facts.input_shape[2]),
                "data.train.image_size=224, and the same of data.test, brings images to that size");
  for (const int layer : {0, 3}) {
    x = fc_layer(builder, fmt::format("classifier.{}", layer), x, kHidden, Start::small);
    x = relu_layer(builder, fmt::format("classifier.{}", layer + 1), x);
    x = dropout_layer(builder, fmt::format("classifier.{}", layer + 2), x, request.spec.dropout,
                      request.training);
  }
  return fc_layer(builder, "classifier.6", x, request.facts.classes, Start::small);
}

}  // namespace fleetrun::runtime
