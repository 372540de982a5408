#include "runtime/training/run_job.h"

#include <fcntl.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/system/environment.h"
#include "base/system/host_memory.h"
#include "base/system/unique_fd.h"
#include "comm/rendezvous/exchange.h"
#include "job/spec/settle_pipeline.h"
#include "job/spec/settle_strategy.h"
#include "job/spec/step_share.h"
#include "runtime/checkpoint/model_card.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/observe/gpu_sampler.h"
#include "runtime/training/finish.h"
#include "runtime/training/judge_scores.h"
#include "runtime/training/ranks/agree_on_data.h"
#include "runtime/training/ranks/agreement.h"
#include "runtime/training/ranks/choose_groups.h"
#include "runtime/training/run.h"
#include "runtime/training/save/output_folder.h"
#include "runtime/training/setup/check_length.h"
#include "runtime/training/setup/check_memory.h"
#include "runtime/training/setup/check_metrics.h"
#include "runtime/training/setup/class_weights.h"
#include "runtime/training/setup/compute_options.h"
#include "runtime/training/setup/model_facts.h"
#include "runtime/training/train.h"
#include "runtime/training/trainer/dump_program.h"
#include "runtime/training/trainer/training_communicators.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kSamplesOfASpan = 8;     // the least that a thread of the loader makes at once
constexpr std::size_t kOtherSpansOfAStep = 8;  // waiting for data, snapshots

// Groups of "the ranks of a node" have one size.
void check_ranks_of_nodes(const job::StrategySpec& strategy, const comm::World& world) {
  if (world.env.nodes == 1 || !strategy.use_hierarchical_allreduce.value_or(false) ||
      strategy.hierarchical_allreduce_inter_nranks != 1)
    return;
  const std::vector<std::string> counts =
      comm::exchange(world.party(), "ranks of a node", std::to_string(world.env.local_size),
                     comm::Deadline(comm::kJoinDeadline));
  for (std::size_t rank = 1; rank < counts.size(); ++rank)
    if (counts[rank] != counts[0])
      throw Error(
          ErrorKind::config,
          fmt::format(
              "strategy.hierarchical_allreduce_inter_nranks is 1, which stands for the ranks of a node, "
              "wanted the same number on each node: the node of rank 0 has {}, that of rank {} has {}",
              counts[0], rank, counts[rank]),
          "set it to a divisor of the number of all ranks");
}

job::JobSpec settle(job::JobSpec job, comm::World& world, ProgressPage& page) {
  const RankEnv& env = world.env;
  job::plan_shares(job, env.world_size);  // throws for more ranks than samples
  check_ranks_of_nodes(job.strategy, world);
  const Environment environment = Environment::of_this_process();
  const job::SettledStrategy settled =
      job::settle_strategy(job.strategy, {env.world_size, env.local_size, env.device != "cpu"},
                           [&](const std::string& name) { return environment.get(name); });
  if (env.rank == 0)
    for (const std::string& note : settled.notes) log_line("rank 0", note);
  job.strategy = choose_groups(settled.strategy, world, page);
  if (env.rank != 0) return job;
  if (env.world_size > 1) log_line("rank 0", describe_communicators(job.strategy));
  return job;
}

PassWatcher pass_watcher(const RankEnv& env) {
  return env.rank == 0 && !env.passes_dir.empty() ? dump_passes(env.passes_dir) : nullptr;
}

void print_search(const job::StrategySpec& strategy, const AlgorithmSearch& search, std::ostream& out) {
  for (const std::string& warning : search.warnings) out << "warning: " << warning << std::endl;
  if (strategy.cudnn_exhaustive_search && search.problems > 0) out << describe(search) << std::endl;
}

// Rank 0 says what it found in the data, and how the programs were made.
void announce(const job::JobSpec& job, const RankEnv& env, const DataSets& data, const Trainer& trainer,
              std::ostream& out) {
  if (env.rank != 0) return;
  for (const std::string& note : data.notes) out << note << std::endl;
  if (const std::string warning = warn_of_large_step(*data.train, job, env.world_size); !warning.empty())
    out << warning << std::endl;
  for (const std::string& message : trainer.pass_messages()) out << message << std::endl;
  print_search(job.strategy, trainer.algorithm_search(), out);
}

void announce_choices(const RankEnv& env, const Device& device, std::ostream& out) {
  if (env.rank != 0) return;
  for (const std::string& line : device.choices()) out << line << std::endl;
}

// Rank 0 makes the folders for what it writes. Returns its claim on output.dir, which holds as long as the descriptor is open.
UniqueFd make_folders(const job::JobSpec& job, const RankEnv& env, const Trainer& trainer) {
  if (env.rank != 0) return {};
  UniqueFd claim = prepare_output(job.output);
  if (!env.dump_dir.empty()) dump_programs(env.dump_dir, trainer);
  return claim;
}

// The first step of this process, and how long the training is. Loads the newest checkpoint, if there is one: weights, optimizer, and
// the place in the data, from which train() goes on.
Progress begin_or_resume(const job::JobSpec& job, const DataSets& data, const Loaders& loaders,
                         Checkpointing& checkpoints) {
  Progress progress = {.steps_per_epoch = loaders.train.batches_per_epoch()};
  progress.total_steps =
      job.train.max_steps ? *job.train.max_steps : std::int64_t{*job.train.epochs} * progress.steps_per_epoch;
  progress.state = checkpoints.resume({progress.steps_per_epoch, data.train->size(), data.split});
  progress.first_step = progress.state.steps;
  return progress;
}

// A file of other frameworks does not say how its pixels were scaled.
std::vector<std::string> differences_of_scale(const Metadata& was, const job::JobSpec& job,
                                              const ModelCard& card) {
  if (!was.contains("model.name")) return {};
  try {
    return differences_of_scale(read_model_card(was, *job.model.pretrained), card, set_of_card(job),
                                "when the weights of model.pretrained were trained");
  } catch (const Error&) {
    return {};
  }
}

// torchvision's values are for pixels from 0 to 1.
void warn_of_units(const job::DataSetSpec& set, std::ostream& out) {
  const auto are_below_1 = [](const std::vector<double>& values) {
    return !values.empty() &&
           std::ranges::all_of(values, [](double value) { return value > 0 && value < 1; });
  };
  if (!are_below_1(set.mean) || !are_below_1(set.deviation)) return;
  std::vector<double> mean = set.mean, deviation = set.deviation;
  for (std::vector<double>* const values : {&mean, &deviation})
    for (double& value : *values) value *= 255;
  out << fmt::format(
             "warning: data.train.mean and std are for pixels from 0 to 255, and all of them are below 1; for pixels from 0 to 1 "
             "they would be mean=[{:g}] std=[{:g}]",
             fmt::join(mean, ","), fmt::join(deviation, ","))
      << std::endl;
}

// Of a training that begins with the weights of the file.
void warn_of_pretrained(const job::JobSpec& job, const ModelCard& card, std::ostream& out) {
  if (!job.model.pretrained) return;
  const UniqueFd fd(::open(job.model.pretrained->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return;
  const Metadata was = read_metadata(fd.get());
  for (const std::string& line : {difference_of_classes(was, card), difference_of_split(was, card)})
    if (!line.empty()) out << line << std::endl;
  for (const std::string& line : differences_of_scale(was, job, card)) out << line << std::endl;
}

// Every rank checks it, rank 0 says what it found.
void announce_length(const job::JobSpec& job, const RankEnv& env, const Progress& progress,
                     std::ostream& out) {
  for (const std::string& line : check_length(job, progress.state, progress.total_steps))
    if (env.rank == 0) out << line << std::endl;
}

void weigh_classes(const job::JobSpec& job, const RankEnv& env, const DataSet& train, Trainer& trainer,
                   std::ostream& out) {
  if (!job.data.class_weights) return;
  const int classes = resolve_model_facts(job.model, train).classes;
  const std::vector<float> weights = resolve_class_weights(*job.data.class_weights, train, classes);
  if (env.rank == 0) out << describe_class_weights(weights, train) << std::endl;
  trainer.weigh_classes(weights);
}

// What needs to know where the training starts, and which ops a step has.
void complete_observers(Run& run) {
  Observers& observers = run.observers;
  if (run.is_first_rank() && run.job.output.tensorboard)
    observers.events = std::make_unique<TrainingEvents>(run.job.output.dir + "/tensorboard",
                                                        run.progress.first_step, run.out);
  if (run.is_first_rank() && !run.world.env.log_dir.empty()) {
    observers.history =
        std::make_unique<TrainingHistory>(fmt::format("{}/{}", run.world.log_dir(), kHistoryFile),
                                          run.checkpoints.loaded(), run.progress.first_step, run.out);
    run.checkpoints.save_history_of(observers.history->file());
  }
  Timeline* const timeline = observers.trace.timeline();
  if (timeline == nullptr) return;
  observers.wait = timeline->add({Lane::data, "wait for a batch", "data", ""});
  observers.evaluation = timeline->add({Lane::compute, "evaluation", "evaluation", ""});
  observers.spans_of_step =
      // Of the host, of a device beside it, and of the device's kernels.
      (2 + DeviceActivities::kOfAnOp) * run.trainer.executor().program().ops.size() +
      2 * static_cast<std::size_t>(run.loaders.train.batch()) / kSamplesOfASpan + kOtherSpansOfAStep;
}

}  // namespace

// worker_main.cpp has read the job and joined the other ranks; it writes the report that this returns, or the error. The Trainer builds the
// programs of a training and of an evaluation step, and the passes rewrite them. train() in train.cpp does steps, evaluations and
// checkpoints until the last step, early stopping or a signal ends the training.
TrainReport run_job(const job::JobSpec& asked, comm::World& world, ProgressPage& page, std::ostream& out,
                    std::unique_ptr<Device> device) {
  page.phase = Phase::loading;
  page.beat();
  const job::JobSpec job = settle(asked, world, page);
  Observers observers = {.time = {page, monotonic_ns()},
                         .trace = {job.output, world.env, *world.communicator, out}};
  Timeline* const timeline = observers.trace.timeline();

  if (!device) device = make_agreed_device(world, job.strategy);
  out << device->notice() << std::flush;
  const GpuSampler sampler(page, device->bus_id());
  const TrainingCommunicators communicators(job.strategy, world, *device, &page.records());
  const DataSets data(job.data, job.train.seed);
  agree_on_data(world, data);
  const ModelFacts facts = resolve_model_facts(job.model, *data.train);
  check_metrics(job, facts.classes);
  ModelCard card = make_model_card(job, facts, data.train->class_names());
  card.split = data.split;
  if (device->streams() == nullptr) check_memory(job, facts, world.env, read_host_memory());
  Trainer trainer(job, facts, *device, communicators.all(),
                  {.threads = job.train.threads.value_or(world.env.threads),
                   .timeline = timeline,
                   .watcher = pass_watcher(world.env),
                   .feeds = image_form_for(*device)});
  weigh_classes(job, world.env, *data.train, trainer, out);
  Loaders loaders(data, job, world.env, *device, timeline);
  if (job::stages_of(job.strategy, world.env.world_size) == 1)  // a stage knows only its own layers
    add_facts_of_programs(card, trainer.executor().program(), trainer.evaluation_executor().program());
  Checkpointing checkpoints({job, world, trainer, card, page, out}, timeline);
  agree_on_program(world, *device, trainer.program_text());
  announce(job, world.env, data, trainer, out);
  if (world.env.rank == 0) warn_of_units(job.data.train, out);
  announce_choices(world.env, *device, out);
  const UniqueFd claim = make_folders(job, world.env, trainer);

  const Progress progress = begin_or_resume(job, data, loaders, checkpoints);
  if (world.env.rank == 0 && progress.first_step == 0) warn_of_pretrained(job, card, out);
  announce_length(job, world.env, progress, out);
  Run run = {job, world, page, out, data, trainer, loaders, checkpoints, observers, card, claim, progress};
  run.scores.scale = trainer.loss_scale();
  complete_observers(run);
  begin_judging(run);  // takes over the best score so far; early stopping may end the training here
  train(run);
  return finish(run);
}

}  // namespace fleetrun::runtime
