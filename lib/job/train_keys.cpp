#include "job/job_keys.h"
#include "job/make_key.h"

namespace fleetrun::job {
namespace {

constexpr double kMostThreads = 1024;  // compute threads of a rank; more than any machine has cores for

}  // namespace

Key train_keys() {
  const Section<TrainSpec> train{[](JobSpec& spec) -> TrainSpec& { return spec.train; }};
  return make_object_key(
      "train", "how long, and what is said meanwhile",
      {
          make_key("epochs", train(&TrainSpec::epochs), "passes over the samples",
                   {.range = Range::from(1),
                    .excludes = "max_steps",
                    .absent = "1, unless train.max_steps is given"}),
          make_key("max_steps", train(&TrainSpec::max_steps),
                   "steps of the whole training, instead of epochs",
                   {.range = Range::from(1), .excludes = "epochs", .absent = "none, train.epochs counts"}),
          make_key("seed", train(&TrainSpec::seed), "of parameters, shuffling, augmentation and dropout"),
          make_key("threads", train(&TrainSpec::threads), "compute threads of a rank",
                   {.range = Range::between(1, kMostThreads), .absent = "cores / local ranks"}),
          make_key("log_every", train(&TrainSpec::log_every), "steps between lines",
                   {.range = Range::from(1)}),
          make_key("fetch_every", train(&TrainSpec::fetch_every),
                   "steps between fetches of loss and accuracy", {.range = Range::from(1)}),
          make_key("print_format", train(&TrainSpec::print_format), "which of the two formats the lines have",
                   {.choices = {choice("epoch", PrintFormat::epoch), choice("worker", PrintFormat::worker)}}),
          make_key("eval_every", train(&TrainSpec::eval_every),
                   "epochs between evaluations on data.test, 0: never", {.range = Range::from(0)}),
          make_key(
              "check_weights_every", train(&TrainSpec::check_weights_every),
              "steps between comparisons of all ranks' weights, 0: never; a difference ends the run with 81",
              {.range = Range::from(0)}),
          make_key("profile", train(&TrainSpec::profile),
                   "steps after the first whose time rank 0 prints by kind of op, 0: none",
                   {.range = Range::from(0)}),
      });
}

}  // namespace fleetrun::job
