#include "runtime/training/trainer/score_sums.h"

#include <algorithm>
#include <cmath>

namespace fleetrun::runtime {
namespace {

constexpr double kPartsOfOne = 1LL << 36;      // the rest of 100 million samples fits 64 bits
constexpr float kLargestSummedLoss = 1 << 30;  // of one sample; 8 billion of them fit 64 bits

}  // namespace

void ScoreSums::add(std::span<const float> losses, const float* hits) {
  for (const float loss : losses) {
    if (!(std::abs(loss) <= kLargestSummedLoss)) {
      large_ += loss;
      continue;
    }
    const double whole = std::floor(static_cast<double>(loss));
    whole_ += static_cast<std::int64_t>(whole);
    parts_ += std::llrint((static_cast<double>(loss) - whole) * kPartsOfOne);
  }
  for (std::size_t i = 0; i < hits_.size(); ++i) hits_[i] += static_cast<std::int64_t>(hits[i]);
}

Score ScoreSums::reduce(comm::Communicator& communicator, std::int64_t classes) {
  std::array<std::int64_t, 5> sums = {whole_, parts_, hits_[0], hits_[1], hits_[2]};
  auto large = static_cast<float>(large_);
  *this = {};
  communicator.all_reduce({&large, 1, DType::f32}, comm::ReduceOp::sum);
  communicator.all_reduce({sums.data(), sums.size(), DType::i64}, comm::ReduceOp::sum);
  const auto [whole, parts, top1, top5, samples] = sums;
  const auto count = static_cast<double>(std::max<std::int64_t>(1, samples));
  const double loss = static_cast<double>(whole) + static_cast<double>(parts) / kPartsOfOne + large;
  return {.loss = loss / count,
          .acc1 = static_cast<double>(top1) / count,
          .acc5 = acc5_of(static_cast<double>(top5) / count, classes),
          .samples = samples};
}

}  // namespace fleetrun::runtime
