#include "runtime/model_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace fleetrun::runtime {

ModelFacts resolve_model_facts(const job::ModelSpec& model, const DataSet& train) {
  const ImageShape& shape = train.shape();
  const ModelFacts facts = {.input_shape = {shape.channels, shape.height, shape.width},
                            .classes = model.class_dim.value_or(train.classes())};
  const auto& [channels, height, width] = facts.input_shape;
  if (model.input_shape && *model.input_shape != facts.input_shape)
    throw Error(ErrorKind::config,
                fmt::format("model.input_shape is [{}], but the images of data.train are [{},{},{}]",
                            fmt::join(*model.input_shape, ","), channels, height, width));
  if (facts.classes < train.classes())
    throw Error(ErrorKind::config, fmt::format("model.class_dim is {}, but data.train has {} classes",
                                               facts.classes, train.classes()));
  return facts;
}

ModelFacts resolve_model_facts(const job::JobSpec& job) {
  if (job.model.input_shape && job.model.class_dim)
    return {.input_shape = *job.model.input_shape, .classes = *job.model.class_dim};
  return resolve_model_facts(job.model, *open_data_set(job.data.train));
}

}  // namespace fleetrun::runtime
