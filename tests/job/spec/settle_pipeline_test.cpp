#include "job/spec/settle_pipeline.h"

#include <doctest/doctest.h>

namespace fleetrun::job::settle_pipeline_test {
namespace {

JobSpec job_of(int batch) {
  JobSpec job;
  job.strategy.pipeline = true;
  job.data.batch_size = batch;
  return job;
}

TEST_CASE("the size of a micro-batch gives their number, and the number gives the size") {
  JobSpec job = job_of(24);
  job.strategy.pipeline_configs.micro_batch_size = 3;
  CHECK(micro_batches_of(job, 4) == MicroBatches{3, 8});
  job.strategy.pipeline_configs.accumulate_steps = 8;
  CHECK(micro_batches_of(job, 4) == MicroBatches{3, 8});
  job.strategy.pipeline_configs.micro_batch_size.reset();
  CHECK(micro_batches_of(job, 4) == MicroBatches{3, 8});
}

TEST_CASE("without numbers, each stage has four micro-batches or a few more") {
  CHECK(micro_batches_of(job_of(32), 2) == MicroBatches{4, 8});
  CHECK(micro_batches_of(job_of(36), 2) == MicroBatches{4, 9});
  CHECK(micro_batches_of(job_of(6), 2) == MicroBatches{1, 6});
  CHECK(micro_batches_of(job_of(31), 2) == MicroBatches{1, 31});
}

TEST_CASE("the ranks of a pipeline train the same samples") {
  CHECK(replicas_of(job_of(8), 4) == 1);
  CHECK(replicas_of({}, 4) == 4);
  JobSpec job = job_of(8);
  job.strategy.hybrid_configs.pp_degree = 2;
  CHECK(replicas_of(job, 6) == 3);
  CHECK(stages_of(job.strategy, 6) == 2);
}

}  // namespace
}  // namespace fleetrun::job::settle_pipeline_test
