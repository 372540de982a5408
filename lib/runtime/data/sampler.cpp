#include "runtime/data/sampler.h"

#include <numeric>
#include <utility>

#include "runtime/data/sample_random.h"

namespace fleetrun::runtime {
namespace {

std::int64_t round_size(const ShardSpec& spec) { return std::int64_t{spec.batch} * spec.world; }

std::vector<std::int32_t> plain_order(int samples) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

// Fisher and Yates, as Durstenfeld wrote it (1964, algorithm 235).
std::vector<std::int32_t> shuffled_order(int samples, std::int64_t seed, int epoch) {
  std::vector<std::int32_t> order = plain_order(samples);
  SampleRandom random(RandomUse::shuffle, {seed, epoch});
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(static_cast<std::uint32_t>(left))]);
  return order;
}

int batches_per_epoch(const ShardSpec& spec) {
  const std::int64_t round = round_size(spec);
  const bool drop = !spec.evaluation && spec.uneven == job::Uneven::drop;
  return static_cast<int>((spec.samples + (drop ? 0 : round - 1)) / round);
}

std::vector<std::int32_t> plan_epoch(const ShardSpec& spec, const EpochStart& start) {
  const int epoch = start.epoch;
  const bool shuffle = spec.shuffle && !spec.evaluation;
  const std::vector<std::int32_t> order =
      shuffle ? shuffled_order(spec.samples, spec.seed, epoch) : plain_order(spec.samples);
  const auto at = [&](std::int64_t place) -> std::int32_t {
    if (place < 0) return kNoSample;
    if (place < spec.samples) return order[static_cast<std::size_t>(place)];
    if (spec.evaluation) return kNoSample;
    SampleRandom random(RandomUse::pad, {spec.seed, epoch, place});
    return order[random.below(static_cast<std::uint32_t>(spec.samples))];
  };
  const int batches = batches_per_epoch(spec);
  std::vector<std::int32_t> mine;
  mine.reserve(static_cast<std::size_t>(batches) * static_cast<std::size_t>(spec.batch));
  for (std::int64_t k = 0; k < batches; ++k)
    for (std::int64_t i = 0; i < spec.batch; ++i)
      mine.push_back(at(k * round_size(spec) + std::int64_t{spec.rank} * spec.batch + i + start.shift));
  return mine;
}

}  // namespace fleetrun::runtime
