#include "runtime/training/profile_steps.h"

#include <ostream>

namespace fleetrun::runtime {
namespace {

constexpr int kRepeats = 3;  // of each op by itself

bool wants_profile(const Run& run) { return run.job.train.profile > 0 && run.is_first_rank(); }

}  // namespace

// The first step of a process is like no other: it touches memory for the first time.
void profile_step(Run& run) {
  const std::int64_t after_first = run.progress.state.steps - run.progress.first_step - 1;
  if (after_first >= run.job.train.profile) run.trainer.stop_measuring_ops();
  if (!wants_profile(run) || after_first > run.job.train.profile) return;
  ProfiledSteps& profile = run.observers.profile;
  profile.end = {.time_ns = monotonic_ns(),
                 .data_ns = run.observers.time.spent(TimeUse::data),
                 .step_ns = run.observers.step_ns,
                 .op_ns = run.trainer.executor().op_ns(),
                 .op_runs = run.trainer.executor().op_runs()};
  if (after_first == 0) profile.begin = profile.end;
  profile.steps = static_cast<int>(after_first);
}

void print_profile(Run& run) {
  if (!wants_profile(run)) return;
  const ProfiledSteps& profile = run.observers.profile;
  if (profile.steps == 0)
    run.out << "no profile: there was no step after the first" << std::endl;
  else
    run.out << describe(make_profile(run.trainer.executor().program(), profile.begin, profile.end,
                                     profile.steps, run.trainer.time_alone(kRepeats)))
            << std::flush;
}

}  // namespace fleetrun::runtime
