#include "runtime/tune/findings.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime::findings_test {
namespace {

bool has(const std::vector<std::string>& lines, const std::string& wanted) {
  return std::find(lines.begin(), lines.end(), wanted) != lines.end();
}

TEST_CASE("each piece of advice has a line, also one that was not tried") {
  Tuned tuned;
  tuned.tried = {{.name = "fuse_bn_act_ops",
                  .ratio = 0.9,
                  .interval = {0.88, 0.92},
                  .turns = 12,
                  .advice = Advice::fuse},
                 {.name = "num_threads 4",
                  .ratio = 1.01,
                  .interval = {0.99, 1.04},
                  .turns = 4,
                  .advice = Advice::threads_of_devices}};
  const std::vector<std::string> lines = findings(
      tuned, {.wait_share = 0.001, .fetch_share = 0.04, .memory_bytes = 100 << 20, .loader_threads = 2});
  CHECK(has(
      lines,
      "fusions: seems faster, 0.900 (0.880 to 0.920) of the time, and was not measured again (fuse_bn_act_ops)"));
  CHECK(has(
      lines,
      "num_threads of 2 to 4 times the devices: no clear difference, 1.010 (0.990 to 1.040) of the time (num_threads 4)"));
  CHECK(has(
      lines,
      "bigger batches: not tried: --memory, which says how much memory a rank may use, is missing, or the job sets data.batch_size or train.global_batch"));
  CHECK(has(lines, "fetching the loss takes 4 % of a step: try a larger train.fetch_every"));
  CHECK(has(
      lines,
      "a step waits for its batch during 0.1 % of its time with 2 loader threads: more threads gain nothing"));
  CHECK(has(lines, "a rank uses 100.0 MiB as the job is"));
}

TEST_CASE("hunt 59: what was measured again has the figures of that measurement") {
  const Effect searched = {
      .name = "fuse_bn_act_ops", .ratio = 0.9, .interval = {0.88, 0.92}, .turns = 12, .advice = Advice::fuse};
  Effect again = searched;
  again.ratio = 0.95;
  again.interval = {0.93, 0.96};
  const auto told = [&] { return findings({.confirmed = again, .tried = {searched}}, {}); };
  CHECK(has(told(), "fusions: faster, 0.950 (0.930 to 0.960) of the time (fuse_bn_act_ops)"));
  again.interval = {0.93, 1.02};
  CHECK(has(told(), "fusions: no clear difference, 0.950 (0.930 to 1.020) of the time (fuse_bn_act_ops)"));
}

TEST_CASE("advice without a time says why") {
  Tuned tuned;
  tuned.same = {"groups of a tenth of all gradients"};
  tuned.left_out = {"activation memory kept for 30 steps"};
  const FindingFacts facts = {
      .space = {.ranks = 2, .gradient_bytes = 1 << 20, .fixed = {"strategy.nccl_comm_num"}}};
  const std::vector<std::string> lines = findings(tuned, facts);
  CHECK(has(lines, "all-reduces of a tenth of all gradient bytes: changes nothing here, or is not possible"));
  CHECK(has(lines, "num_iteration_per_drop_scope 30: not tried: the budget is too small"));
  CHECK(has(lines,
            "2 communicators and num_threads 3: not tried: there is one rank, or the job sets these keys"));
}

}  // namespace
}  // namespace fleetrun::runtime::findings_test
