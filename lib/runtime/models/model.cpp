#include "runtime/models/model.h"

#include <array>

#include "base/error.h"
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
