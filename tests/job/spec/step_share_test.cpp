#include "job/spec/step_share.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::job::step_share_test {
namespace {

JobSpec with_global_batch(int samples) {
  JobSpec job;
  job.train.global_batch = samples;
  return job;
}

TEST_CASE("a batch size per rank grows the step with the ranks") {
  JobSpec job;
  job.data.batch_size = 16;
  const StepShares shares = plan_shares(job, 3);
  CHECK(shares.samples == 48);
  CHECK(shares.are_equal());
  CHECK(shares.of(2).first == 32);
  CHECK(shares.of(2).count == 16);
}

TEST_CASE("the ranks of a global batch follow one another without a gap, and differ by at most one sample") {
  for (const int samples : {1, 5, 64, 67})
    for (int ranks = 1; ranks <= samples && ranks <= 9; ++ranks) {
      CAPTURE(samples);
      CAPTURE(ranks);
      const StepShares shares = plan_shares(with_global_batch(samples), ranks);
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        CHECK(shares.of(rank).first == next);
        next += shares.of(rank).count;
        CHECK(shares.of(rank).count >= shares.smallest());
        CHECK(shares.of(rank).count <= shares.largest());
      }
      CHECK(next == samples);
      CHECK(shares.largest() - shares.smallest() == (samples % ranks == 0 ? 0 : 1));
    }
}

TEST_CASE("a global batch with fewer samples than ranks is refused") {
  CHECK_THROWS_WITH_AS(
      plan_shares(with_global_batch(3), 4),
      "train.global_batch is 3, wanted at least 4: each of the 4 ranks needs a sample in every step", Error);
  CHECK_NOTHROW(plan_shares(with_global_batch(4), 4));
}

}  // namespace
}  // namespace fleetrun::job::step_share_test
