#include "job/keys/job_keys.h"
#include "job/keys/make_key.h"

namespace fleetrun::job {
namespace {

constexpr double kMostThreads = 1024;  // compute threads of a rank; more than any machine has cores for

Key early_stopping_keys() {
  const Section<EarlyStoppingSpec> stopping{[](JobSpec& spec) -> EarlyStoppingSpec& {
    std::optional<EarlyStoppingSpec>& here = spec.train.early_stopping;
    return here ? *here : here.emplace();
  }};
  Key keys =
      make_object_key("early_stopping", "ends a training that no longer gets better",
                      {
                          make_key("metric", stopping(&EarlyStoppingSpec::metric),
                                   "score of the evaluations that must get better; early stopping is off "
                                   "unless the job has train.early_stopping",
                                   {.choices = metrics()}),
                          make_key("patience", stopping(&EarlyStoppingSpec::patience),
                                   "evaluations in a row without improvement after which the training ends",
                                   {.range = Range::from(1)}),
                          make_key("min_delta", stopping(&EarlyStoppingSpec::min_delta),
                                   "a score counts as an improvement if it is better by more than this",
                                   {.range = Range::from(0)}),
                      },
                      {.absent = "off"});
  keys.present = [](const JobSpec& spec) { return spec.train.early_stopping.has_value(); };
  return keys;
}

}  // namespace

std::vector<Choice> metrics() {
  return {choice("loss", Metric::loss), choice("acc1", Metric::acc1), choice("acc5", Metric::acc5)};
}

Key train_keys() {
  const Section<TrainSpec> train{[](JobSpec& spec) -> TrainSpec& { return spec.train; }};
  return make_object_key(
      "train", "how long to train, and what to print",
      {
          make_key("epochs", train(&TrainSpec::epochs), "passes over the samples",
                   {.range = Range::from(1),
                    .excludes = "train.max_steps",
                    .absent = "1 without train.max_steps"}),
          make_key("max_steps", train(&TrainSpec::max_steps),
                   "steps of the whole training, instead of train.epochs",
                   {.range = Range::from(1), .excludes = "train.epochs", .absent = "off"}),
          make_key("global_batch", train(&TrainSpec::global_batch),
                   "samples of all ranks together in each step, instead of data.batch_size",
                   {.range = Range::from(1), .excludes = "data.batch_size", .absent = "off"}),
          make_key("seed", train(&TrainSpec::seed),
                   "random seed of parameters, shuffling, augmentation and dropout"),
          make_key("threads", train(&TrainSpec::threads), "compute threads per rank",
                   {.range = Range::between(1, kMostThreads), .absent = "cores / local ranks"}),
          make_key("log_every", train(&TrainSpec::log_every),
                   "steps between printed lines; each epoch begins with one", {.range = Range::from(1)}),
          make_key("fetch_every", train(&TrainSpec::fetch_every),
                   "steps between reads of loss and accuracy; a step that prints a line reads them, too",
                   {.range = Range::from(1)}),
          make_key(
              "print_format", train(&TrainSpec::print_format),
              "format of the printed lines; epoch: `[Epoch 0, batch 5] loss: ...`; worker: `worker_index: 0, step5 cost = ...`",
              {.choices = {choice("epoch", PrintFormat::epoch), choice("worker", PrintFormat::worker)}}),
          make_key("eval_every", train(&TrainSpec::eval_every),
                   "epochs between evaluations on data.test or data.split; 0: never",
                   {.range = Range::from(0)}),
          make_key(
              "check_weights_every", train(&TrainSpec::check_weights_every),
              "steps between comparisons of all ranks' weights; 0: never; a difference ends the run with code 81",
              {.range = Range::from(0)}),
          early_stopping_keys(),
          make_key("profile", train(&TrainSpec::profile),
                   "number of steps to profile, from the second step on; 0: none", {.range = Range::from(0)}),
      });
}

}  // namespace fleetrun::job
