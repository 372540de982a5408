#include "runtime/training/setup/check_memory.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "job/spec/step_share.h"
#include "runtime/compile/build_program.h"
#include "runtime/graph/op_def.h"
#include "runtime/plan/step_costs.h"

namespace fleetrun::runtime {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kSureOfNeed = 0.9;     // of the predicted bytes are needed in any case
constexpr double kShareToAdvise = 0.8;  // of the memory: the rest of the host needs some, too

// Bytes of a rank: those that grow with its batch, and the others.
struct Need {
  double of_batch = 0, fixed = 0;

  double all() const { return of_batch + fixed; }
};

Need need_of(const job::JobSpec& job, const ModelFacts& facts, int world_size) {
  const StepCosts costs =
      step_costs(build_training_program(job, facts, all_ops(), {.world_size = world_size}), all_ops());
  Need need = {.of_batch = costs.activation_bytes + costs.batch_bytes * (job.data.prefetch + 1)};
  const bool each_keeps_a_part =
      job.strategy.sharding || job.strategy.build_strategy.reduce_strategy == job::ReduceStrategy::Reduce;
  if (!each_keeps_a_part) need.fixed = costs.all_bytes() - costs.activation_bytes;
  return need;
}

// The largest batch of a rank that fits, in round numbers; 0: none.
int fitting_batch(const Need& need, int batch, double room) {
  const double each = need.of_batch / batch;
  const double most = (kShareToAdvise * room - need.fixed) / each;
  if (most < 1) return 0;
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(most)) - 1));  // two digits
  return static_cast<int>(std::min<double>(batch, std::floor(most / unit) * unit));
}

}  // namespace

void check_memory(const job::JobSpec& job, const ModelFacts& facts, const RankEnv& env,
                  const HostMemory& host) {
  if (job.strategy.pipeline || host.total <= 0) return;
  const job::StepShares shares = job::plan_shares(job, env.world_size);
  const int batch = shares.largest();
  const Need need = need_of(job, facts, env.world_size);
  const auto room = static_cast<double>(host.total + host.swap);
  if (kSureOfNeed * need.all() * env.local_size <= room) return;
  const bool is_global = job.train.global_batch.has_value();
  const char* const key = is_global ? "train.global_batch" : "data.batch_size";
  const int fits = fitting_batch(need, batch, room / env.local_size);
  std::string hint = "a smaller model, smaller images (image_size) or strategy.recompute=true need less";
  if (fits > 0)
    hint = fmt::format("about {}={} fits; strategy.recompute=true allows more", key,
                       is_global ? fits * env.world_size : fits);
  throw Error(
      ErrorKind::config,
      fmt::format(
          "{} is {}: a training step needs about {:.1f} GiB of memory{}, but this host has {:.1f} GiB ({:.1f} GiB "
          "of it free)",
          key, is_global ? *job.train.global_batch : batch, need.all() * env.local_size / kGiB,
          env.local_size > 1 ? fmt::format(" for {}", plural(env.local_size, "rank")) : "",
          static_cast<double>(host.total) / kGiB, static_cast<double>(host.free) / kGiB),
      hint);
}

}  // namespace fleetrun::runtime
