#include "job/spec/settle_pipeline.h"

namespace fleetrun::job {
namespace {

constexpr int kMicroBatchesPerStage = 4;

}  // namespace

MicroBatches micro_batches_of(const JobSpec& job, int stages) {
  const PipelineSpec& pipeline = job.strategy.pipeline_configs;
  const int batch = job.data.batch_size;
  if (pipeline.micro_batch_size) return {*pipeline.micro_batch_size, batch / *pipeline.micro_batch_size};
  if (pipeline.accumulate_steps) return {batch / *pipeline.accumulate_steps, *pipeline.accumulate_steps};
  for (int count = kMicroBatchesPerStage * stages; count < batch; ++count)
    if (batch % count == 0) return {batch / count, count};
  return {1, batch};
}

int stages_of(const StrategySpec& strategy, int ranks) {
  return strategy.pipeline ? strategy.hybrid_configs.pp_degree.value_or(ranks) : 1;
}

int replicas_of(const JobSpec& job, int ranks) { return ranks / stages_of(job.strategy, ranks); }

}  // namespace fleetrun::job
