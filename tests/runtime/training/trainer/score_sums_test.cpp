#include "runtime/training/trainer/score_sums.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "runtime/tensor/philox.h"
#include "support/run_world.h"

namespace fleetrun::runtime::score_sums_test {
namespace {

// Rank r has the losses r, r + ranks, r + 2 * ranks, ...
Score score_on(int ranks, const std::vector<float>& losses) {
  Score score;
  std::mutex mutex;
  testing::run_world(ranks, [&](comm::Communicator& communicator) {
    ScoreSums sums;
    for (auto i = static_cast<std::size_t>(communicator.rank()); i < losses.size();
         i += static_cast<std::size_t>(ranks)) {
      const std::array hits = {1.0F, 1.0F, 1.0F};
      sums.add({&losses[i], 1}, hits.data());
    }
    const Score mine = sums.reduce(communicator, 10);
    const std::lock_guard lock(mutex);
    score = mine;
  });
  return score;
}

TEST_CASE("the mean loss is the same to the bit, whichever rank has which sample") {
  std::vector<float> losses;
  double sum = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    losses.push_back(std::exp(30 * unit_float(philox(5, 0, i)[0]) - 20));  // from 2e-9 to 2e4
    sum += losses.back();
  }
  const Score one = score_on(1, losses);
  CHECK(one.loss == doctest::Approx(sum / 1000).epsilon(1e-9));
  CHECK(one.samples == 1000);
  CHECK(one.acc1 == 1);
  for (const int ranks : {2, 3, 7}) CHECK(score_on(ranks, losses).loss == one.loss);
}

TEST_CASE("losses that no integer holds make the mean as large") {
  CHECK(score_on(2, {1, 3e38F, 1}).loss == doctest::Approx(1e38));
  CHECK(std::isinf(score_on(2, {1, std::numeric_limits<float>::infinity()}).loss));
  CHECK(std::isnan(score_on(2, {1, std::numeric_limits<float>::quiet_NaN(), 2}).loss));
  CHECK(score_on(2, {}).loss == 0);
}

TEST_CASE("the next evaluation begins with nothing") {
  testing::run_world(1, [&](comm::Communicator& communicator) {
    ScoreSums sums;
    const float loss = 2;
    const std::array hits = {1.0F, 1.0F, 1.0F};
    sums.add({&loss, 1}, hits.data());
    CHECK(sums.reduce(communicator, 10).loss == 2);
    CHECK(sums.reduce(communicator, 10).samples == 0);
  });
}

}  // namespace
}  // namespace fleetrun::runtime::score_sums_test
