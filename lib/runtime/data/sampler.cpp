#include "runtime/data/sampler.h"

#include <numeric>
#include <utility>

#include "runtime/data/sample_random.h"

namespace fleetrun::runtime {
namespace {

std::vector<std::int32_t> plain_order(int samples) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

job::StepShares ShardSpec::shares() const {
  return {.samples = global_batch > 0 ? global_batch : std::int64_t{batch} * world, .ranks = world};
}

// Fisher and Yates, as Durstenfeld wrote it (1964, algorithm 235).
std::vector<std::int32_t> shuffled_order(int samples, std::int64_t seed, int epoch) {
  std::vector<std::int32_t> order = plain_order(samples);
  SampleRandom random(RandomUse::shuffle, {seed, epoch});
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(static_cast<std::uint32_t>(left))]);
  return order;
}

int batches_per_epoch(const ShardSpec& spec) {
  const std::int64_t round = spec.shares().samples;
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
  const job::StepShares shares = spec.shares();
  const job::StepShare share = shares.of(spec.rank);
  std::vector<std::int32_t> mine;
  mine.reserve(static_cast<std::size_t>(batches) * static_cast<std::size_t>(share.count));
  for (std::int64_t k = 0; k < batches; ++k)
    for (std::int64_t i = 0; i < share.count; ++i)
      mine.push_back(at(k * shares.samples + share.first + i + start.shift));
  return mine;
}

}  // namespace fleetrun::runtime
