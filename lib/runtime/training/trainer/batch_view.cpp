#include "runtime/training/trainer/batch_view.h"

#include <string>

#include "runtime/passes/pipeline/stage_program.h"

namespace fleetrun::runtime {

BatchView samples_from(const BatchView& batch, std::int64_t first, std::int64_t elements) {
  const auto from = [first](const auto* all, std::int64_t each) {
    return all == nullptr ? nullptr : all + first * each;
  };
  return {.images = from(batch.images, elements),
          .labels = from(batch.labels, 1),
          .weights = from(batch.weights, 1),
          .pixels = from(batch.pixels, elements),
          .views = from(batch.views, 1)};
}

void bind_samples(Executor& executor, const BatchView& samples, int number, int count) {
  const auto bind = [&](const char* feed, const void* data) {
    const std::string name = name_in_micro_batch(feed, number, count);
    const Program& program = executor.program();
    const ValueId id = program.find(name);
    if (id != kNone && program.value(id).kind == ValueKind::feed) executor.bind(name, data);
  };
  bind("image", samples.images);
  bind("pixels", samples.pixels);
  bind("view", samples.views);
  bind("label", samples.labels);
  bind("sample_weight", samples.weights);
}

}  // namespace fleetrun::runtime
