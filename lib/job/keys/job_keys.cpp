#include "job/keys/job_keys.h"

#include "job/keys/make_key.h"

namespace fleetrun::job {
namespace {

Key checkpoint_keys() {
  const Section<CheckpointSpec> checkpoint{[](JobSpec& spec) -> CheckpointSpec& { return spec.checkpoint; }};
  return make_object_key(
      "checkpoint", "when and where to save the training",
      {
          make_path_key("dir", checkpoint(&CheckpointSpec::dir),
                        "folder of the checkpoints; a relative path starts at output.dir, and the folder "
                        "must be inside it",
                        {.absent = "none, no checkpoints"}),
          make_key("every_epochs", checkpoint(&CheckpointSpec::every_epochs),
                   "epochs between checkpoints; 0: none at the end of epochs", {.range = Range::from(0)}),
          make_key("every_steps", checkpoint(&CheckpointSpec::every_steps), "steps between checkpoints",
                   {.range = Range::from(1), .absent = "off"}),
          make_key("keep", checkpoint(&CheckpointSpec::keep), "number of newest checkpoints to keep",
                   {.range = Range::from(1)}),
          make_key("keep_best", checkpoint(&CheckpointSpec::keep_best),
                   "keeps the weights of the epoch with the best such score on data.test or data.split "
                   "in output.dir/best.safetensors",
                   {.choices = metrics(), .absent = "off"}),
          make_key(
              "resume", checkpoint(&CheckpointSpec::resume),
              "auto: resumes from the newest valid checkpoint in dir; never: starts from the beginning; or the path of a checkpoint"),
      });
}

Key output_keys() {
  const Section<OutputSpec> output{[](JobSpec& spec) -> OutputSpec& { return spec.output; }};
  return make_object_key(
      "output", "what the job writes",
      {
          make_path_key(
              "dir", output(&OutputSpec::dir),
              "folder for everything that the job writes; a relative path starts at the folder of the job file, also on the "
              "command line. In the file it must stay inside that folder; output.dir=PATH on the command line may lead anywhere"),
          make_key("tensorboard", output(&OutputSpec::tensorboard),
                   "writes TensorBoard event files to output.dir/tensorboard"),
          make_key("trace", output(&OutputSpec::trace),
                   "first and last step of the Chrome trace of all ranks in output.dir/trace.json",
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
      "", "a training job",
      {
          model_keys(),
          data_keys(),
          optimizer_keys(),
          train_keys(),
          checkpoint_keys(),
          strategy_keys(),
          make_path_key(
              "strategy_file", job(&JobSpec::strategy_file),
              "file with Fleet's DistributedStrategy as protobuf text; keys under strategy override it",
              {.absent = "none"}),
          make_key("env", job(&JobSpec::env), "environment variables of the workers"),
          make_key("device", job(&JobSpec::device), "device to train on; --device overrides it",
                   {.choices = {choice("auto", DeviceChoice::automatic), choice("cpu", DeviceChoice::cpu),
                                choice("cuda", DeviceChoice::cuda)}}),
          output_keys(),
      });
}

std::string value_text(JobSpec spec, const std::string& path) {
  const Key keys = job_keys();
  return find_key(keys, path)->show(spec).text;
}

}  // namespace fleetrun::job
