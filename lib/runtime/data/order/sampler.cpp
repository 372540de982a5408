#include "runtime/data/order/sampler.h"

#include <map>
#include <numeric>
#include <utility>

#include "runtime/data/order/sample_random.h"

namespace fleetrun::runtime {
namespace {

std::vector<std::int32_t> plain_order(int samples) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Fisher and Yates, as Durstenfeld wrote it (1964, algorithm 235).
void shuffle(std::vector<std::int32_t>& order, SampleRandom& random) {
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(static_cast<std::uint32_t>(left))]);
}

// Classes that have samples, each with its samples.
std::vector<std::vector<std::int32_t>> samples_by_class(const std::vector<std::int32_t>& labels) {
  std::map<std::int32_t, std::vector<std::int32_t>> by_label;
  for (std::size_t i = 0; i < labels.size(); ++i) by_label[labels[i]].push_back(static_cast<std::int32_t>(i));
  std::vector<std::vector<std::int32_t>> classes;
  classes.reserve(by_label.size());
  for (auto& [label, samples] : by_label) classes.push_back(std::move(samples));
  return classes;
}

std::vector<std::int32_t> order_of_epoch(const ShardSpec& spec, int epoch) {
  if (!spec.shuffle || spec.evaluation) return plain_order(spec.samples);
  if (spec.is_balanced()) return balanced_order(*spec.labels, spec.seed, epoch);
  return shuffled_order(spec.samples, spec.seed, epoch);
}

}  // namespace

job::StepShares ShardSpec::shares() const {
  return {.samples = global_batch > 0 ? global_batch : std::int64_t{batch} * world, .ranks = world};
}

std::vector<std::int32_t> shuffled_order(int samples, std::int64_t seed, int epoch) {
  std::vector<std::int32_t> order = plain_order(samples);
  SampleRandom random(RandomUse::shuffle, {seed, epoch});
  shuffle(order, random);
  return order;
}

std::vector<std::int32_t> balanced_order(const std::vector<std::int32_t>& labels, std::int64_t seed,
                                         int epoch) {
  std::vector<std::vector<std::int32_t>> classes = samples_by_class(labels);
  SampleRandom random(RandomUse::balance, {seed, epoch});
  std::vector<std::int32_t> turns = plain_order(static_cast<int>(classes.size()));
  shuffle(turns, random);
  std::vector<std::int32_t> order;
  order.reserve(labels.size());
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    std::vector<std::int32_t>& samples = classes[static_cast<std::size_t>(turns[turn])];
    const std::size_t count = labels.size() / turns.size() + (turn < labels.size() % turns.size() ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) {
      if (i % samples.size() == 0) shuffle(samples, random);
      order.push_back(samples[i % samples.size()]);
    }
  }
  shuffle(order, random);
  return order;
}

int batches_per_epoch(const ShardSpec& spec) {
  const std::int64_t round = spec.shares().samples;
  const bool drop = !spec.evaluation && spec.uneven == job::Uneven::drop;
  return static_cast<int>((spec.samples + (drop ? 0 : round - 1)) / round);
}

std::vector<std::int32_t> plan_epoch(const ShardSpec& spec, const EpochStart& start) {
  const int epoch = start.epoch;
  const std::vector<std::int32_t> order = order_of_epoch(spec, epoch);
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
