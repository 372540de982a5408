#include "launch/run/hang_sampler.h"

#include <unistd.h>

#include <doctest/doctest.h>

#include "base/system/file.h"
#include "launch/run/plain_run.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::hang_sampler_test {
namespace {

using namespace std::chrono_literals;

// Rank 0 runs, under the rule that a line with "loss" comes every 10 s.
struct RuledRun : PlainRun {
  RuledRun() {
    options.log_rule.value = parse_log_rule("--log_rule", "loss within 10s");
    cluster.device_ids.resize(1);
    cluster.console.apart = {false};
    report.verdict.ranks = {{Role::running, {}, {}}};
    workers = {{.pid = ::getpid()}};
  }
};

struct LookedAt {
  LookedAt() { sampler.follow_new_logs(); }
  // Looks once a second. True: in one of the looks up to this time, the run hung.
  bool hangs_within(Clock::duration time) {
    bool hangs = false;
    for (; next <= time; next += 1s)
      hangs = sampler.look(run.state(), {}, TimePoint() + 1h + next).has_value() || hangs;
    return hangs;
  }
  void write(const std::string& text) const { write_all(log.get(), text, "the log"); }

  const TemporaryFolder folder;
  const RuledRun run;
  const RunPlan plan = run.plan();
  const LogFolder logs{folder / "log"};
  const UniqueFd log = logs.open_worker_log(0);
  HangSampler sampler{plan, logs};
  Clock::duration next = 0s;
};

TEST_CASE("the part of a log that grew too fast to be read counts as a match") {
  LookedAt run;
  CHECK_FALSE(run.hangs_within(8s));
  run.write("loss 1\n" + std::string(2 << 20, 'x') + "\n");
  CHECK_FALSE(run.hangs_within(18s));  // 9 s after what may have matched
  CHECK(run.hangs_within(20s));
}

TEST_CASE("a long text without a match is none if all of it was read") {
  LookedAt run;
  CHECK_FALSE(run.hangs_within(8s));
  run.write(std::string(1 << 20, 'x'));
  CHECK(run.hangs_within(11s));
}

}  // namespace
}  // namespace fleetrun::launch::hang_sampler_test
