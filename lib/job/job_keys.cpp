#include "job/job_keys.h"

#include "job/make_key.h"

namespace fleetrun::job {
namespace {

Key checkpoint_keys() {
  const Section<CheckpointSpec> checkpoint{[](JobSpec& spec) -> CheckpointSpec& { return spec.checkpoint; }};
  return make_object_key(
      "checkpoint", "when and where the state of the training is kept",
      {
          make_path_key("dir", checkpoint(&CheckpointSpec::dir), "where checkpoints go, inside output.dir",
                        {.absent = "none, no checkpoints"}),
          make_key("every_epochs", checkpoint(&CheckpointSpec::every_epochs),
                   "epochs between checkpoints; 0: none by epochs", {.range = Range::from(0)}),
          make_key("every_steps", checkpoint(&CheckpointSpec::every_steps), "steps between checkpoints",
                   {.range = Range::from(1), .absent = "off"}),
          make_key("keep", checkpoint(&CheckpointSpec::keep), "checkpoints that are kept, the newest ones",
                   {.range = Range::from(1)}),
          make_key("resume", checkpoint(&CheckpointSpec::resume),
                   "auto: go on from the newest complete checkpoint in dir; never; or the path of one"),
      });
}

Key output_keys() {
  const Section<OutputSpec> output{[](JobSpec& spec) -> OutputSpec& { return spec.output; }};
  return make_object_key(
      "output", "what the job writes",
      {
          make_path_key(
              "dir", output(&OutputSpec::dir),
              "everything that the job writes is in here; inside the folder of the job file, another "
              "folder only by output.dir=... on the command line"),
          make_key("tensorboard", output(&OutputSpec::tensorboard), "event files in output.dir/tensorboard"),
          make_key("trace", output(&OutputSpec::trace),
                   "first and last step of a Chrome trace of all ranks, output.dir/trace.json",
                   {.range = Range::from(1), .absent = "off"}),
      });
}

Section<JobSpec> whole_job() {
  return {[](JobSpec& spec) -> JobSpec& { return spec; }};
}

}  // namespace

Key job_keys() {
  const Section<JobSpec> job = whole_job();
  return make_object_key(
      "", "what to train, on what, how",
      {
          model_keys(),
          data_keys(),
          optimizer_keys(),
          train_keys(),
          checkpoint_keys(),
          strategy_keys(),
          later(make_path_key("strategy_file", job(&JobSpec::strategy_file),
                              "Fleet's DistributedStrategy as protobuf text; keys under strategy win",
                              {.absent = "none"})),
          make_key("env", job(&JobSpec::env), "variables that are exported to the workers"),
          make_key("device", job(&JobSpec::device), "where to train; --device wins",
                   {.choices = {choice("auto", DeviceChoice::automatic), choice("cpu", DeviceChoice::cpu),
                                choice("cuda", DeviceChoice::cuda)}}),
          output_keys(),
      });
}

}  // namespace fleetrun::job
