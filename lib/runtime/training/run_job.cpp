#include "runtime/training/run_job.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ostream>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/environment.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/timeline.h"
#include "job/schedule.h"
#include "job/settle_strategy.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/data/data_set.h"
#include "runtime/data/loader.h"
#include "runtime/observe/gather_texts.h"
#include "runtime/observe/lines.h"
#include "runtime/observe/profile.h"
#include "runtime/observe/time_book.h"
#include "runtime/observe/trace.h"
#include "runtime/observe/training_events.h"
#include "runtime/training/agreement.h"
#include "runtime/training/checkpointing.h"
#include "runtime/training/dump_program.h"
#include "runtime/training/model_facts.h"
#include "runtime/training/numerics.h"
#include "runtime/training/replicas.h"
#include "runtime/training/trainer.h"
#include "runtime/training/training_communicators.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kSamplesOfASpan = 8;     // the least that a thread of the loader makes at once
constexpr int kProfileRepeats = 3;             // of each op by itself
constexpr std::size_t kOtherSpansOfAStep = 8;  // waiting for data, snapshots

double seconds_of(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

// The data sets of a job, opened, and what the model has to know about them.
struct Data {
  std::unique_ptr<DataSet> train;
  std::unique_ptr<DataSet> test;  // null: no evaluation

  explicit Data(const job::DataSpec& spec) : train(open_data_set(spec.train)) {
    if (!spec.test) return;
    test = open_data_set(*spec.test, train.get());
    check_same_kind(*train, *test);
  }
};

std::string weights_path(const job::OutputSpec& output) { return output.dir + "/model.safetensors"; }

// Rank 0 writes there at the end: what stands in the way is told before the hours of training.
void prepare_output(const job::OutputSpec& output) {
  const std::string& folder = output.dir;
  const char* const way_out = "output.dir=FOLDER behind the job file chooses another one";
  make_directories(folder);
  require_own_weights(weights_path(output), way_out);
  if (output.trace) require_own_trace(output, way_out);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(
        ErrorKind::create,
        fmt::format("output.dir is {}, which may not be written to: {}", folder, describe_errno(errno)),
        way_out);
}

LoaderOptions training_loader(const job::JobSpec& job, const RankEnv& env, Timeline* timeline) {
  LoaderOptions options = make_loader_options(job.data, job.data.train);
  options.rank = env.rank;
  options.world = env.world_size;
  options.seed = job.train.seed;
  options.timeline = timeline;
  return options;
}

LoaderOptions evaluation_loader(const job::JobSpec& job, const RankEnv& env) {
  LoaderOptions options = make_loader_options(job.data, *job.data.test);
  options.rank = env.rank;
  options.world = env.world_size;
  options.evaluation = true;
  return options;
}

job::JobSpec settle(job::JobSpec job, const RankEnv& env) {
  const Environment environment = Environment::of_this_process();
  const job::SettledStrategy settled =
      job::settle_strategy(job.strategy, {env.world_size, env.local_size, env.device != "cpu"},
                           [&](const std::string& name) { return environment.get(name); });
  job.strategy = settled.strategy;
  if (env.rank == 0)
    for (const std::string& note : settled.notes) log_line("rank 0", note);
  if (env.rank == 0 && env.world_size > 1) log_line("rank 0", describe_communicators(job.strategy));
  return job;
}

class Run {
 public:
  Run(const job::JobSpec& job, comm::World& world, ProgressPage& page, std::ostream& out)
      : job_(settle(job, world.env)),
        world_(world),
        page_(page),
        out_(out),
        time_(page, monotonic_ns()),
        trace_(job_.output, world.env, *world.communicator, out),
        device_(make_agreed_device(world, job.strategy)),
        communicators_(job_.strategy, world, *device_, &page.records()),
        data_(job.data),
        trainer_(job_, resolve_model_facts(job.model, *data_.train), *device_, communicators_.all(),
                 job.train.threads.value_or(world.env.threads), trace_.timeline(),
                 world.env.rank == 0 && !world.env.passes_dir.empty() ? dump_passes(world.env.passes_dir)
                                                                      : nullptr),
        loader_(*data_.train, training_loader(job, world.env, trace_.timeline())),
        steps_per_epoch_(loader_.batches_per_epoch()),
        checkpoints_(job, world, trainer_, page, out, trace_.timeline()) {
    if (data_.test) test_loader_ = std::make_unique<Loader>(*data_.test, evaluation_loader(job, world.env));
    total_steps_ =
        job.train.max_steps ? *job.train.max_steps : std::int64_t{*job.train.epochs} * steps_per_epoch_;
    agree_on_program(world, *device_, trainer_.program_text());
    if (world.env.rank == 0) {
      for (const std::string& message : trainer_.pass_messages()) out_ << message << std::endl;
      tell_search();
      prepare_output(job.output);
      if (!world.env.dump_dir.empty()) dump_programs(world.env.dump_dir, trainer_);
    }
    state_ = checkpoints_.resume(steps_per_epoch_, data_.train->size());
    loss_scale_ = trainer_.loss_scale();
    first_step_ = state_.steps;
    if (world.env.rank == 0 && job.output.tensorboard)
      events_ = std::make_unique<TrainingEvents>(job.output.dir + "/tensorboard", first_step_, out);
    if (Timeline* timeline = trace_.timeline()) {
      wait_label_ = timeline->add({Lane::data, "wait for a batch", "data", ""});
      evaluation_label_ = timeline->add({Lane::compute, "evaluation", "evaluation", ""});
      spans_of_step_ = trainer_.executor().program().ops.size() +
                       2 * static_cast<std::size_t>(job.data.batch_size) / kSamplesOfASpan +
                       kOtherSpansOfAStep;
    }
  }

  TrainReport train() {
    page_.epochs = static_cast<std::uint32_t>(planned_epochs());
    page_.steps = static_cast<std::uint64_t>(total_steps_);
    page_.step = static_cast<std::uint64_t>(state_.steps);
    time_.begin(world_.env.attempt, state_.steps, monotonic_ns());
    bool last = state_.steps >= total_steps_;
    if (last) nothing_left();
    while (!last && !stopped_) {
      train_epoch();
      last = state_.steps >= total_steps_;
      if (!stopped_ && evaluation_is_due(last)) evaluate(state_.epoch);
      if (stopped_) break;
      if (state_.batch == steps_per_epoch_) next_epoch();
      keep_after([&] { checkpoints_.after_epoch(state_, last); });
    }
    see([this] { trace_.finish(state_.steps); });
    page_.phase = Phase::finished;  // with training: how long the writing takes says nothing about a hang
    if (!stopped_) keep_after([&] { checkpoints_.finish(); });
    const TimeUses time = sum_time();
    skipped_ = count_skipped();
    if (world_.env.rank == 0 && !stopped_) save_weights();
    if (!stopped_) tell_profile();
    return report(time);
  }

 private:
  // What `work` takes is time of `use`.
  template <typename Work>
  auto book(TimeUse use, const Work& work) {
    const Booking booking(time_, use);
    return work();
  }

  // What is written for people to look at: the disk may take its time.
  template <typename Work>
  void see(const Work& work) {
    const PhaseHere here(page_, Phase::saving);
    work();
  }

  // Snapshots and waiting for them are checkpoint, the rest is communication: whether somebody asked for one.
  template <typename Work>
  void keep_after(const Work& work) {
    const std::int64_t waited = checkpoints_.waited_ns();
    const std::int64_t saved = checkpoints_.saved_steps();
    const std::int64_t start = monotonic_ns();
    work();
    const std::int64_t took = monotonic_ns() - start;
    const std::int64_t for_checkpoint = checkpoints_.waited_ns() - waited;
    time_.add(TimeUse::checkpoint, for_checkpoint);
    time_.add(TimeUse::communication, took - for_checkpoint);
    if (checkpoints_.saved_steps() != saved) time_.keep(checkpoints_.saved_steps(), monotonic_ns());
    time_.publish(monotonic_ns());
  }

  const Batch* next_batch(Loader& loader) {
    const SpanHere span(trace_.timeline(), wait_label_);
    const PhaseHere here(page_, Phase::reading);
    return book(TimeUse::data, [&] { return loader.next([this] { page_.beat(); }); });
  }

  // A checkpoint of the end of a training that is no longer now.
  void nothing_left() {
    out_ << fmt::format("nothing is left to train: the job ends after {} steps", total_steps_) << std::endl;
    if (test_loader_ && job_.train.eval_every > 0) evaluate(epochs_begun() - 1);
  }

  int epochs_begun() const { return state_.epoch + (state_.batch > 0 ? 1 : 0); }

  int planned_epochs() const {
    const std::int64_t left = std::max<std::int64_t>(0, total_steps_ - state_.steps);
    return state_.epoch + static_cast<int>((state_.batch + left + steps_per_epoch_ - 1) / steps_per_epoch_);
  }

  void next_epoch() {
    ++state_.epoch;
    state_.batch = 0;
  }

  bool evaluation_is_due(bool last) const {
    const int every = job_.train.eval_every;
    return test_loader_ && every > 0 && ((state_.epoch + 1) % every == 0 || last);
  }

  void train_epoch() {
    page_.phase = Phase::training;
    page_.epoch = static_cast<std::uint32_t>(state_.epoch);
    loader_.start_epoch(state_.epoch, state_.batch);
    const std::int64_t start = monotonic_ns();
    while (state_.steps < total_steps_ && !stopped_) {
      trace_.before_step(state_.steps + 1, spans_of_step_);
      const Batch* next = next_batch(loader_);
      if (next == nullptr) break;
      const bool ends_run = is_last_of_run();
      train_step(*next, ends_run);
      if (ends_run) keep_after([&] { stopped_ = checkpoints_.after_step(state_); });
      see([this] { trace_.after_step(state_.steps); });
      profile_step();
    }
    train_seconds_ += seconds_of(monotonic_ns() - start);
  }

  // Behind each step. The first step of a process is none like the others: memory is touched for the first time.
  void profile_step() {
    const std::int64_t behind_first = state_.steps - first_step_ - 1;
    if (job_.train.profile == 0 || world_.env.rank != 0 || behind_first > job_.train.profile) return;
    profile_end_ = {.time_ns = monotonic_ns(),
                    .data_ns = time_.spent(TimeUse::data),
                    .step_ns = step_ns_,
                    .op_ns = trainer_.executor().op_ns()};
    if (behind_first == 0) profile_begin_ = profile_end_;
    profiled_steps_ = static_cast<int>(behind_first);
  }

  // At the end, when no other rank waits for this one: ops are timed by themselves.
  void tell_profile() {
    if (job_.train.profile == 0 || world_.env.rank != 0) return;
    if (profiled_steps_ == 0)
      out_ << "no profile: there was no step behind the first" << std::endl;
    else
      out_ << describe(make_profile(trainer_.executor().program(), profile_begin_, profile_end_,
                                    profiled_steps_, trainer_.time_alone(kProfileRepeats)))
           << std::flush;
  }

  // Of num_iteration_per_run steps. An epoch, and the training, ends with a run.
  bool is_last_of_run() const {
    const int steps = job_.strategy.execution_strategy.num_iteration_per_run;
    return (state_.batch + 1) % steps == 0 || state_.batch + 1 == steps_per_epoch_ ||
           state_.steps + 1 == total_steps_;
  }

  void train_step(const Batch& data, bool ends_run) {
    const std::int64_t place = std::int64_t{state_.epoch} * steps_per_epoch_ + state_.batch;
    const double rate = job::learning_rate_at(job_.optimizer.learning_rate, {state_.steps, place},
                                              steps_per_epoch_, total_steps_);
    const double speed = job_.data.batch_size / timed_step({data.images, data.labels}, rate);
    fetch_is_due_ =
        fetch_is_due_ || state_.steps % job_.train.fetch_every == 0 || state_.steps + 1 == total_steps_;
    log_is_due_ = log_is_due_ || state_.batch % job_.train.log_every == 0;
    if (ends_run && std::exchange(fetch_is_due_, false)) book(TimeUse::compute, [this] { fetch(); });
    if (ends_run && std::exchange(log_is_due_, false)) {
      record_step(speed, rate);
      log(speed);
    }
    tell_skipped(loader_);
    ++state_.steps;
    ++state_.batch;
    page_.step = static_cast<std::uint64_t>(state_.steps);
    page_.images_per_second = speed;
    page_.beat();
    const int every = job_.train.check_weights_every;
    if (every > 0 && state_.steps % every == 0 && world_.env.world_size > 1)
      book(TimeUse::communication,
           [this] { check_replicas(trainer_.storage().fingerprint(), state_.steps, *world_.communicator); });
  }

  // The seconds that it took.
  double timed_step(const BatchView& batch, double learning_rate) {
    const std::int64_t communicated = trainer_.communication_ns();
    const std::int64_t start = monotonic_ns();
    trainer_.step(batch, learning_rate);
    const std::int64_t took = monotonic_ns() - start;
    step_ns_ += took;
    const std::int64_t communication = std::min(took, trainer_.communication_ns() - communicated);
    time_.add(TimeUse::communication, communication);
    time_.add(TimeUse::compute, took - communication);
    page_.communication_share = seconds_of(communication) / seconds_of(took);
    return seconds_of(took);
  }

  void fetch() {
    score_ = trainer_.score();
    page_.loss = score_.loss;
    if (!std::isfinite(score_.loss))
      stop_without_numbers(fmt::format("the loss of rank {}", world_.env.rank), score_.loss);
    tell_loss_scale();
  }

  void tell_loss_scale() {
    const std::optional<float> scale = trainer_.loss_scale();
    if (world_.env.rank == 0 && loss_scale_ && scale != loss_scale_)
      out_ << fmt::format("the loss scale is {} after step {}, was {}", *scale, state_.steps + 1,
                          *loss_scale_)
           << std::endl;
    loss_scale_ = scale;
  }

  [[noreturn]] void stop_without_numbers(const std::string& what, double value) const {
    const std::string where = first_not_finite(trainer_.executor().program(), trainer_.storage());
    throw Error(ErrorKind::numerics,
                fmt::format("{} is {} at step {}{}", what, value, state_.steps,
                            where.empty() ? "" : ", and so is " + where),
                "a lower optimizer.learning_rate or a warm-up often helps");
  }

  void log(double speed) {
    if (job_.train.print_format == job::PrintFormat::worker)
      out_ << worker_line(world_.env.rank, state_.steps, score_.loss, speed) << std::endl;
    else
      out_ << epoch_line(state_.epoch, state_.batch, score_) << std::endl;
  }

  void record_step(double speed, double learning_rate) {
    if (!events_) return;
    std::vector<Scalar> scalars = {{"train/loss", score_.loss},
                                   {"train/acc1", score_.acc1},
                                   {"train/acc5", score_.acc5},
                                   {"train/learning_rate", learning_rate},
                                   {"train/images_per_second", speed * world_.env.world_size},
                                   {"train/communication_share", page_.communication_share}};
    if (loss_scale_) scalars.push_back({"train/loss_scale", *loss_scale_});
    see([&] { events_->add(state_.steps + 1, scalars); });
  }

  void evaluate(int epoch) {
    page_.phase = Phase::evaluating;
    const SpanHere span(trace_.timeline(), evaluation_label_);
    book(TimeUse::communication, [this] { trainer_.share_statistics(); });
    test_loader_->start_epoch(0);
    while (const Batch* batch = next_batch(*test_loader_)) {
      book(TimeUse::compute, [&] { trainer_.evaluate({batch->images, batch->labels}); });
      tell_skipped(*test_loader_);
      page_.beat();
      keep_after([&] { stopped_ = checkpoints_.after_step(state_); });
      if (stopped_) return;
    }
    test_score_ = book(TimeUse::communication, [this] { return trainer_.finish_evaluation(); });
    out_ << test_line(epoch, *test_score_) << std::endl;
    if (!std::isfinite(test_score_->loss)) judge_test_loss();
    if (events_)
      see([this] {
        events_->add(state_.steps, {{"test/loss", test_score_->loss},
                                    {"test/acc1", test_score_->acc1},
                                    {"test/acc5", test_score_->acc5}});
      });
  }

  // A training whose weights are good goes on, though the model scores a test sample beyond what f32 holds.
  void judge_test_loss() {
    const Program& program = trainer_.whole_program();
    const PlainTensors weights = read_tensors(weights_of(program), program, trainer_.storage());
    if (!first_not_finite(weights).empty())
      stop_without_numbers("the loss of the test samples", test_score_->loss);
    out_ << fmt::format(
                "warning: the loss of the test samples is {}; all weights are finite, and the training goes "
                "on",
                test_score_->loss)
         << std::endl;
  }

  // Of all ranks; of this one when they were stopped, and may end at any time.
  TimeUses sum_time() {
    TimeUses time = time_.until(monotonic_ns());
    time_.publish(monotonic_ns());
    if (world_.env.world_size > 1 && !stopped_)
      world_.communicator->all_reduce({time.data(), time.size(), DType::i64}, comm::ReduceOp::sum);
    return time;
  }

  // Each once, whoever met it: on rank 0 those of all ranks, unless they were stopped.
  std::int64_t count_skipped() {
    if (job_.data.bad_sample != job::BadSample::skip) return 0;
    std::string names = loader_.skipped_names();
    if (test_loader_) names += test_loader_->skipped_names();
    std::string all = names;
    if (world_.env.world_size > 1 && !stopped_)
      all = fmt::format("{}", fmt::join(gather_texts(names, *world_.communicator), ""));
    std::set<std::string> different;
    std::istringstream each(all);
    for (std::string name; std::getline(each, name, '\0');) different.insert(name);
    return static_cast<std::int64_t>(different.size());
  }

  void tell_skipped(Loader& loader) {
    for (const std::string& why : loader.take_skipped())
      out_ << "warning: a sample is skipped: " << printable(why) << std::endl;
  }

  void save_weights() {
    const std::string path = weights_path(job_.output);
    trainer_.save(path);
    out_ << "weights: " << path << std::endl;
  }

  void tell_search() {
    for (const std::string& warning : trainer_.algorithm_search().warnings)
      out_ << "warning: " << warning << std::endl;
    if (job_.strategy.cudnn_exhaustive_search && trainer_.algorithm_search().problems > 0)
      out_ << describe(trainer_.algorithm_search()) << std::endl;
  }

  TrainReport report(const TimeUses& time) const {
    const double images =
        static_cast<double>(state_.steps - first_step_) * job_.data.batch_size * world_.env.world_size;
    const Schedule& schedule = trainer_.executor().schedule();
    TrainReport report = {.world_size = world_.env.world_size,
                          .epochs = epochs_begun(),
                          .steps = state_.steps,
                          .resumed_at = first_step_,
                          .stopped = stopped_,
                          .skipped_samples = skipped_,
                          .loss = state_.steps > first_step_ ? std::optional(score_.loss) : std::nullopt,
                          .train_seconds = train_seconds_,
                          .images_per_second = train_seconds_ > 0 ? images / train_seconds_ : 0,
                          .parameter_bytes = trainer_.storage().parameter_bytes(),
                          .gradient_bytes = trainer_.storage().gradient_bytes(),
                          .activation_bytes = schedule.arena_bytes,
                          .activation_bytes_saved = schedule.unshared_bytes - schedule.arena_bytes,
                          .in_place_pairs = schedule.in_place_pairs,
                          .time = time,
                          .timed_ranks = stopped_ ? 1 : world_.env.world_size};
    report.unsaved = checkpoints_.last_problem().value_or("");
    if (test_score_) {
      if (std::isfinite(test_score_->loss)) report.test_loss = test_score_->loss;
      report.test_accuracy = test_score_->acc1;
    }
    return report;
  }

  const job::JobSpec job_;
  comm::World& world_;
  ProgressPage& page_;
  std::ostream& out_;
  TimeBook time_;
  Trace trace_;
  std::unique_ptr<Device> device_;
  TrainingCommunicators communicators_;
  Data data_;
  Trainer trainer_;
  Loader loader_;
  std::unique_ptr<Loader> test_loader_;

  int steps_per_epoch_ = 0;
  std::int64_t total_steps_ = 0;
  Checkpoints checkpoints_;
  TrainingState state_;
  std::int64_t first_step_ = 0;  // of this process
  std::int64_t skipped_ = 0;     // different samples, counted at the end
  bool stopped_ = false;         // by SIGTERM, with a checkpoint
  // Behind the last step of a run of steps. Before the first fetch there is no loss to log.
  bool fetch_is_due_ = true;
  bool log_is_due_ = false;
  double train_seconds_ = 0;
  std::int64_t step_ns_ = 0;  // in steps so far
  ProfileMark profile_begin_, profile_end_;
  int profiled_steps_ = 0;
  Timeline::Label wait_label_ = 0, evaluation_label_ = 0;
  std::size_t spans_of_step_ = 0;
  std::unique_ptr<TrainingEvents> events_;  // of rank 0, with output.tensorboard
  Score score_;
  std::optional<float> loss_scale_;  // as it was fetched last
  std::optional<Score> test_score_;
};

}  // namespace

TrainReport run_job(const job::JobSpec& job, comm::World& world, ProgressPage& page, std::ostream& out) {
  page.phase = Phase::loading;
  page.beat();
  return Run(job, world, page, out).train();
}

}  // namespace fleetrun::runtime
