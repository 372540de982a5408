#include "runtime/training/setup/model_facts.h"

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"

namespace fleetrun::runtime {

namespace {

// "train.txt:17: images/17.jpg of class 1000"
std::string first_with_label_from(int label, const DataSet& set) {
  for (int sample = 0; sample < set.size(); ++sample)
    if (set.label(sample) >= label)
      return fmt::format("{} of class {}", set.describe(sample), set.label(sample));
  return "none";
}

// Null: it cannot be opened, and the job does not need it.
std::unique_ptr<DataSet> open_if_there(const job::JobSpec& job) {
  try {
    return open_data_set(job.data.train);
  } catch (const Error&) {
    if (!job.model.input_shape || !job.model.class_dim) throw;
    return nullptr;
  }
}

}  // namespace

ModelFacts resolve_model_facts(const job::ModelSpec& model, const DataSet& train) {
  const ImageShape& shape = train.shape();
  const ModelFacts facts = {.input_shape = {shape.channels, shape.height, shape.width},
                            .classes = model.class_dim.value_or(train.classes())};
  const auto& [channels, height, width] = facts.input_shape;
  if (model.input_shape && *model.input_shape != facts.input_shape)
    throw Error(ErrorKind::config,
                fmt::format("model.input_shape is [{}], but the images of data.train are [{},{},{}]",
                            fmt::join(*model.input_shape, ","), channels, height, width));
  if (facts.classes < 2)
    throw Error(ErrorKind::config,
                "data.train has 1 class, wanted at least 2: there would be nothing to learn",
                "model.class_dim=N gives the model N classes, whatever data.train has");
  if (facts.classes < train.classes())
    throw Error(
        ErrorKind::config,
        fmt::format("model.class_dim is {}, but data.train has {} classes: {} is the first of the others",
                    facts.classes, train.classes(), first_with_label_from(facts.classes, train)));
  return facts;
}

ModelFacts resolve_model_facts(const job::JobSpec& job) {
  if (job.model.input_shape && job.model.class_dim)
    return {.input_shape = *job.model.input_shape, .classes = *job.model.class_dim};
  return resolve_model_facts(job.model, *open_data_set(job.data.train));
}

ModelCard model_card_of(const job::JobSpec& job) {
  const std::unique_ptr<DataSet> train = open_if_there(job);
  return make_model_card(job, train ? resolve_model_facts(job.model, *train) : resolve_model_facts(job),
                         train ? train->class_names() : std::vector<std::string>());
}

}  // namespace fleetrun::runtime
