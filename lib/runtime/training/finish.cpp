#include "runtime/training/finish.h"

#include <fcntl.h>

#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/system/unique_fd.h"
#include "base/text/plural.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/observe/gather_texts.h"
#include "runtime/training/profile_steps.h"
#include "runtime/training/save/best_weights.h"
#include "runtime/training/save/output_folder.h"
#include "runtime/training/scored_weights.h"

namespace fleetrun::runtime {
namespace {

// A stopped rank asks no other rank for its figures: the others may be gone.
bool reports_alone(const Run& run) { return run.is_alone() || run.progress.stopped; }

// Of all ranks, or of this one when it reports alone.
TimeUses sum_time(Run& run) {
  TimeUses time = run.observers.time.until(monotonic_ns());
  run.observers.time.publish(monotonic_ns());
  if (!reports_alone(run))
    run.world.communicator->all_reduce({time.data(), time.size(), DType::i64}, comm::ReduceOp::sum);
  return time;
}

// Counts a sample once, however many ranks skipped it. Of all ranks on rank 0, or of this one when it reports alone.
std::int64_t count_skipped(Run& run) {
  if (run.job.data.bad_sample != job::BadSample::skip) return 0;
  std::string names = run.loaders.train.skipped_names();
  if (run.loaders.test) names += run.loaders.test->skipped_names();
  if (!reports_alone(run))
    names = fmt::format("{}", fmt::join(gather_texts(names, *run.world.communicator), ""));
  std::set<std::string> different;
  std::istringstream each(names);
  for (std::string name; std::getline(each, name, '\0');) different.insert(name);
  return static_cast<std::int64_t>(different.size());
}

struct MemoryUse {
  std::int64_t parameters = 0, gradients = 0, activations = 0, saved = 0, in_place_pairs = 0;
};

// Returns the figures of the rank that has the most in all, or those of this rank when it reports alone.
MemoryUse most_memory(Run& run) {
  const Storage& storage = run.trainer.storage();
  const Schedule& schedule = run.trainer.executor().schedule();
  std::array<std::int64_t, 5> most = {
      static_cast<std::int64_t>(storage.parameter_bytes()),
      static_cast<std::int64_t>(storage.gradient_bytes()), static_cast<std::int64_t>(schedule.arena_bytes),
      static_cast<std::int64_t>(schedule.unshared_bytes - schedule.arena_bytes), schedule.in_place_pairs};
  if (!reports_alone(run)) {
    comm::Communicator& ranks = *run.world.communicator;
    const std::int64_t own = most[0] + most[1] + most[2];
    std::int64_t all = own;
    ranks.all_reduce({&all, 1, DType::i64}, comm::ReduceOp::max);
    std::int64_t first = own == all ? -ranks.rank() : -ranks.size();
    ranks.all_reduce({&first, 1, DType::i64}, comm::ReduceOp::max);
    ranks.broadcast({most.data(), most.size(), DType::i64}, static_cast<int>(-first));
  }
  return {most[0], most[1], most[2], most[3], most[4]};
}

void report_memory(const MemoryUse& memory, TrainReport& report) {
  report.parameter_bytes = static_cast<std::size_t>(memory.parameters);
  report.gradient_bytes = static_cast<std::size_t>(memory.gradients);
  report.activation_bytes = static_cast<std::size_t>(memory.activations);
  report.activation_bytes_saved = static_cast<std::size_t>(memory.saved);
  report.in_place_pairs = static_cast<int>(memory.in_place_pairs);
}

// A training that was stopped may have gone on after its last evaluation.
void report_test(const TestScore& test, TrainReport& report) {
  if (std::isfinite(test.score.loss)) report.test_loss = test.score.loss;
  report.test_accuracy = test.score.acc1;
  if (test.steps != report.steps) report.test_epochs = test.epochs;
}

TrainReport make_report(const Run& run, const TimeUses& time, std::int64_t skipped, const MemoryUse& memory) {
  const Progress& progress = run.progress;
  const int ranks = run.world.env.world_size;
  const std::int64_t steps = progress.state.steps - progress.first_step;
  const double images = static_cast<double>(steps * samples_in_step(progress.state));
  TrainReport report = {.world_size = ranks,
                        .epochs = progress.epochs_begun(),
                        .whole_epochs = progress.epochs_done(),
                        .steps = progress.state.steps,
                        .resumed_at = progress.first_step,
                        .stopped = progress.stopped,
                        .planned_epochs = progress.total_epochs,
                        .planned_steps = progress.total_steps,
                        .checkpoint = run.checkpoints.last_path(),
                        .classes = run.trainer.classes(),
                        .train_samples = run.data.train->size(),
                        .test_samples = run.data.test ? run.data.test->size() : 0,
                        .skipped_samples = skipped,
                        .train_seconds = progress.train_seconds,
                        .images_per_second = progress.train_seconds > 0 ? images / progress.train_seconds : 0,
                        .unsaved = run.checkpoints.last_problem().value_or(""),
                        .time = time,
                        .timed_ranks = progress.stopped ? 1 : ranks};
  if (const std::string resume = run.checkpoints.resume_value();
      progress.stopped && resume != run.job.checkpoint.resume)
    report.resume = resume;
  if (steps > 0 && std::isfinite(run.scores.train.loss)) report.loss = run.scores.train.loss;
  if (run.scores.test) report_test(*run.scores.test, report);
  if (run.job.checkpoint.keep_best && progress.state.best)
    report.best = {*progress.state.best, best_path(run.job.output)};
  if (progress.ended_early && run.is_first_rank())
    report.early_end = describe(progress.state.improvement, *run.job.train.early_stopping);
  report.sent_bytes = run.trainer.sent_bytes();
  report_memory(memory, report);
  return report;
}

// What data.use_dali has done on this rank.
void tell_decoded(Run& run) {
  std::int64_t by_device = run.loaders.train.jpegs().by_device, by_cpu = run.loaders.train.jpegs().by_cpu;
  if (run.loaders.test) {
    by_device += run.loaders.test->jpegs().by_device;
    by_cpu += run.loaders.test->jpegs().by_cpu;
  }
  if (by_device + by_cpu == 0) return;
  run.out << fmt::format("images: the GPU decoded {}, the CPU {}", plural(by_device, "JPEG image"), by_cpu)
          << std::endl;
}

// Weights that this run has not trained keep the description with which they were saved, whatever the present job says.
Metadata description_of_weights(const Run& run, bool has_trained) {
  const std::string& saved_in = run.checkpoints.loaded().model;
  if (has_trained || saved_in.empty()) return to_metadata(run.card);
  const UniqueFd fd(::open(saved_in.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  Metadata saved = fd ? read_metadata(fd.get()) : Metadata();
  if (!saved.contains("model.name")) return to_metadata(run.card);  // older checkpoints have none
  saved.erase(kWeightsOfStep);  // a checkpoint has those of its step, and the result has the averages
  return saved;
}

// Every rank calls it, since each may keep some of the weights.
void save_weights_of_all(Run& run) {
  const PlainTensors weights = collect_scored_weights(run);
  if (!run.is_first_rank()) return;
  const bool has_trained = run.progress.state.steps > run.progress.first_step;
  const auto save = has_trained ? save_result : save_result_again;
  save(find_output(run.job.output, run.output), weights, description_of_weights(run, has_trained), run.out);
  run.page.has_saved_weights = true;
}

}  // namespace

TrainReport finish(Run& run) {
  run.page.phase = Phase::finished;  // in this phase the launcher judges no hang: the disk may take its time
  const bool complete = !run.progress.stopped;
  if (complete) book_checkpointing(run, [](Checkpointing& checkpoints) { checkpoints.finish(); });
  const TimeUses time = sum_time(run);
  const std::int64_t skipped = count_skipped(run);
  const MemoryUse memory = most_memory(run);
  if (complete) save_weights_of_all(run);
  if (complete) print_profile(run);
  tell_decoded(run);
  return make_report(run, time, skipped, memory);
}

}  // namespace fleetrun::runtime
