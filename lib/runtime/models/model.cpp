#include "runtime/models/model.h"

#include <array>

#include "base/error/error.h"
#include "runtime/models/models.h"

namespace fleetrun::runtime {
namespace {

struct ModelEntry {
  job::ModelName name;
  ValueId (*build)(Builder&, const ModelRequest&);
};

constexpr std::array kModels = {
    ModelEntry{job::ModelName::mlp, build_mlp},
    ModelEntry{job::ModelName::lenet, build_lenet},
    ModelEntry{job::ModelName::resnet20, build_resnet20},
    ModelEntry{job::ModelName::resnet18, build_resnet},
    ModelEntry{job::ModelName::resnet34, build_resnet},
    ModelEntry{job::ModelName::resnet50, build_resnet},
    ModelEntry{job::ModelName::resnet101, build_resnet},
    ModelEntry{job::ModelName::resnet152, build_resnet},
    ModelEntry{job::ModelName::vgg16, build_vgg16},
    ModelEntry{job::ModelName::mobilenet_v1, build_mobilenet_v1},
};

}  // namespace

ValueId build_model(Builder& builder, const job::ModelSpec& model, const ModelFacts& facts, ValueId image,
                    bool training) {
  for (const ModelEntry& entry : kModels)
    if (entry.name == model.name)
      return entry.build(builder, {.spec = model, .facts = facts, .image = image, .training = training});
  throw Error(ErrorKind::config, "model.name: this model is not supported by this build");
}

}  // namespace fleetrun::runtime
