#include "job/checks/check_class_balance.h"

#include <fmt/format.h>

#include "job/spec/data_set_facts.h"

namespace fleetrun::job {
namespace {

constexpr const char* kClassWeights = "data.class_weights";
constexpr const char* kSampler = "data.sampler";

void check_number_of_weights(const ClassWeights& weights, Draft& draft) {
  const std::optional<int> classes =
      draft.spec.model.class_dim ? draft.spec.model.class_dim : known_classes(draft.spec.data.train);
  if (weights.by_number.empty() || !classes || std::ssize(weights.by_number) == *classes) return;
  draft.report(kClassWeights, fmt::format("a list of {}, wanted {}: the model has {} classes",
                                          weights.by_number.size(), *classes, *classes));
}

}  // namespace

void check_class_balance(Draft& draft) {
  const DataSpec& data = draft.spec.data;
  if (data.class_weights && !draft.has_problem(kClassWeights))
    check_number_of_weights(*data.class_weights, draft);
  if (data.sampler != Sampler::balanced) return;
  if (!data.shuffle)
    draft.report(kSampler,
                 "\"balanced\" beside data.shuffle false, wanted data.shuffle true: it draws at random");
  if (data.class_weights && data.class_weights->balanced)
    draft.notes.emplace_back(
        "data.sampler and data.class_weights are both \"balanced\": each corrects the same imbalance, so rare classes count too much");
}

}  // namespace fleetrun::job
