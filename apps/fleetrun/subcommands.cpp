#include "subcommands.h"

#include <algorithm>

#include <fmt/format.h>

#include "commands.h"
#include "launch/cli/bench_table.h"
#include "launch/cli/flags/launch_flags.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/cli/tune_table.h"
#include "launch/render/target.h"

namespace fleetrun {
namespace {

using launch::Completes;
using launch::Flag;
using launch::kAnyNumber;
using launch::Subcommand;
using Flags = std::vector<Flag>;

Flag json_flag() { return {.names = {"--json"}, .help = "Print JSON"}; }

Flag log_dir_flag() {
  return {.names = {"--log_dir"},
          .argument = "FOLDER",
          .help = "Log folder of the run",
          .variable = "PADDLE_LOG_DIR",
          .completes = Completes::folders,
          .show = [] { return launch::LaunchOptions().log_dir.value; }};
}

Flag ranks_flag(const char* help) { return {.names = {"--rank"}, .argument = "RANKS", .help = help}; }

// All flags of a run, so that the line of a run becomes one of a subcommand by one word more. Its --help shows those that are in `shown`.
std::vector<Flag> flags_of_run(const std::vector<std::string>& shown) {
  static launch::LaunchOptions options;  // the rows refer to it
  std::vector<Flag> flags;
  for (Flag& flag : launch::launch_flags(options)) {
    if (flag.name() == "--help") continue;
    if (std::find(shown.begin(), shown.end(), flag.name()) == shown.end()) flag.help.clear();
    flag.section.clear();
    flags.push_back(std::move(flag));
  }
  return flags;
}

std::vector<Flag> doctor_flags() {
  std::vector<Flag> flags =
      flags_of_run({"--ips", "--hosts", "--hostfile", "--nnodes", "--master", "--node_rank", "--master_addr",
                    "--master_port", "--rdzv_endpoint", "--scheduler", "--start_by", "--join_timeout",
                    "--key_file", "--nproc_per_node", "--start_port", "--log_dir"});
  for (Flag& flag : flags) {
    if (flag.name() != "--join_timeout") continue;
    flag.help = "Seconds to wait for all nodes; then the examination begins without the missing ones (5)";
    flag.show = nullptr;
  }
  flags.insert(flags.begin(), json_flag());
  return flags;
}

std::vector<Flag> tune_flags() {
  std::vector<Flag> flags = launch::tune_flags();
  for (Flag& flag : flags_of_run({"--nproc_per_node", "--hosts", "--hostfile", "--nnodes", "--master",
                                  "--node_rank", "--scheduler", "--log_dir"}))
    flags.push_back(std::move(flag));
  return flags;
}

std::vector<Flag> eval_flags() {
  std::vector<Flag> flags = {
      json_flag(),
      {.names = {"--output_dir"},
       .argument = "FOLDER",
       .help = "Folder of the report (default: eval, beside the model)",
       .completes = Completes::folders},
  };
  for (Flag& flag : flags_of_run({"--nproc_per_node", "--hosts", "--hostfile", "--nnodes", "--master",
                                  "--node_rank", "--scheduler", "--log_dir"}))
    flags.push_back(std::move(flag));
  return flags;
}

std::vector<Flag> plan_flags() {
  return {
      {.names = {"--hosts"}, .argument = "N", .help = "Number of hosts (default: 1)"},
      {.names = {"--gpus"}, .argument = "N", .help = "Ranks of a host (default: 8)"},
      {.names = {"--memory"}, .argument = "SIZE", .help = "Memory of a rank (default: 32 * 10^9 bytes)"},
      {.names = {"--tflops"},
       .argument = "N",
       .help = "10^12 additions and multiplications of a rank per second (default: 10)"},
      {.names = {"--memory_bandwidth"},
       .argument = "N",
       .help = "GB/s between a rank and its memory (default: 700)"},
      {.names = {"--link"}, .argument = "N", .help = "GB/s between two ranks of a host (default: 100)"},
      {.names = {"--network"}, .argument = "N", .help = "GB/s between two hosts (default: 10)"},
      {.names = {"--latency"}, .argument = "N", .help = "Microseconds of a message (default: 20)"},
      {.names = {"--step_ms"},
       .argument = "N",
       .help = "Measured milliseconds of a step on one rank, in place of --tflops and --memory_bandwidth"},
  };
}

// The targets of render, for its --help.
std::string describe_targets() {
  std::string text = "TARGET is one of these: ";
  for (const launch::Target& target : launch::targets())
    text += fmt::format("{} ({}), ", target.name, target.summary);
  text.replace(text.size() - 2, 2, ". ");
  return text +
         "The flags of the run follow --, as they would follow fleetrun. render reads no environment variables for them. It checks the job "
         "file, so call it where the file is.";
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
const std::vector<Subcommand>& subcommands() {
  static const std::vector<Subcommand> table = {
      {.name = "config",
       .arguments = "[flags] JOB.json [KEY.PATH=VALUE...]",
       .summary = "Show each job key's effective value and where it was set",
       .flags =
           [] {
             return Flags{json_flag(),
                          {.names = {"--schema"}, .help = "Print the JSON Schema of job files, for editors"},
                          {.names = {"--keys"},
                           .help = "Print all keys with type, default and meaning, as a Markdown table"}};
           },
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .run = run_config_command},
      {.name = kDoctorName,
       .arguments = "[--json] [flags of the run] [script.py|program|job.json]",
       .summary = "Examine the nodes of a run before its start: network, clocks, CPUs, disks, programs",
       .details =
           "Start it with the flags of the run, where you would start the run: on every node, or once where fleetrun starts the other "
           "nodes itself. The first node prints a table within about 10 s, and names each node that differs or is slow. The exit code is 0, "
           "or 75 if something is wrong.",
       .flags = doctor_flags,
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .ends_flags = true,
       .run = run_doctor_command},
      {.name = "export",
       .arguments = "[flags] JOB.json|MODEL.safetensors [KEY.PATH=VALUE...] OUT.safetensors",
       .summary = "Write the weights with which a job starts, or a model under another framework's names",
       .details =
           "The weights of a job come from train.seed or model.pretrained. The file holds the parameters and the running statistics as f32. If "
           "the job sets model.input_shape and model.class_dim, fleetrun opens no data set. After a training, output.dir contains the trained "
           "weights as model.safetensors.",
       .flags =
           [] {
             return Flags{
                 {.names = {"--names"},
                  .argument = "NAMES",
                  .help =
                      "Names and shapes of the weights: torchvision (default), which timm's ResNet has too, or paddle",
                  .choices = {kExportNames.begin(), kExportNames.end()}}};
           },
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .run = run_export_command},
      {.name = "predict",
       .arguments = "[flags] MODEL IMAGE|FOLDER|-...",
       .summary = "Say what a trained model sees in images",
       .details =
           "Prints class, probability and file, in the order of the images. MODEL is a model.safetensors, a checkpoint, or the output.dir of a "
           "training. A folder stands for all images in it and below it, and - for the paths on stdin, one per line. Images are prepared as in "
           "the test pass of the training. An image that cannot be read gets a line on stderr; the others are still predicted, and the exit code "
           "is 65.",
       .flags =
           [] {
             return Flags{
                 {.names = {"--top"},
                  .argument = "K",
                  .help =
                      "Classes to print for each image (default: 5 for a single image file, otherwise 1)"},
                 {.names = {"--json"}, .help = "Print one JSON object per image and line"},
                 {.names = {"--csv"}, .help = "Print CSV with a header"},
                 {.names = {"--batch_size"},
                  .argument = "N",
                  .help =
                      "Images that go through the network together (default: 1 for a single image file, otherwise 16)"},
                 {.names = {"--nproc_per_node"},
                  .argument = "N",
                  .help =
                      "Processes on this host that share the images, each with one thread (default: one per core)"},
                 {.names = {"--job"},
                  .argument = "JOB.json",
                  .help = "Job of the training, for a file that does not say which model it holds",
                  .completes = Completes::files}};
           },
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .run = run_predict_command},
      {.name = "bench",
       .arguments = "all_reduce [flags]",
       .summary =
           "Measure the speed of all-reduce between ranks on this host, as nccl-tests does, and verify the sums",
       .flags = launch::bench_flags,
       .choices = {"all_reduce"},
       .most_words = kAnyNumber,
       .run = run_bench_command},
      {.name = "logs",
       .arguments = "[flags]",
       .summary = "Show the logs of a run, during the run or after it",
       .flags =
           [] {
             return Flags{
                 {.names = {"--follow", "-f"}, .help = "Keep showing new lines until the run is over"},
                 ranks_flag(
                     "Show only the logs of these ranks: 0,3 or 4-7; all: of every node, on the first one (default: those of this node)"),
                 {.names = {"--since"},
                  .argument = "TIME",
                  .help =
                      "Show only what the ranks wrote since TIME, and up to 5 s before: 30s, 10m, 2h or 1d (ago), or 14:30[:00] (the last one)"},
                 {.names = {"--grep"}, .argument = "REGEX", .help = "Show only lines that match"},
                 {.names = {"--log_prefix"},
                  .argument = "TEMPLATE",
                  .help = "Text before each line, with {rank}, {local_rank} and {attempt}",
                  .may_be_empty = true},
                 log_dir_flag()};
           },
       .run = run_logs_command},
      {.name = "watch",
       .arguments = "[flags]",
       .summary = "Serve the page of a run to a browser on this host, and keep it up to date",
       .details =
           "Prints an address with a token: who does not know the token gets no page. The page has curves, the time of each rank, "
           "and after a failure its cause. It is log/report.html, which you can also open as a file.",
       .flags =
           [] {
             return Flags{{.names = {"--port"},
                           .argument = "PORT",
                           .help = "Port on 127.0.0.1 (default: any that is free)"},
                          log_dir_flag()};
           },
       .run = run_watch_command},
      {.name = "plot",
       .arguments = "[-o FILE.svg] LOG...",
       .summary = "Draw the curves of several runs over each other, as an SVG picture",
       .details = "LOG is a log folder of a job, or a file history.csv.",
       .flags =
           [] {
             return Flags{{.names = {"--output", "-o"},
                           .argument = "FILE",
                           .help = "File to write (default: -, which is stdout)",
                           .completes = Completes::files}};
           },
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .run = run_plot_command},
      {.name = "ps",
       .arguments = "[flags]",
       .summary = "Show the ranks of a run: state, CPU time, memory, and when each last wrote to its log",
       .flags =
           [] {
             return Flags{json_flag(), log_dir_flag()};
           },
       .run = run_ps_command},
      {.name = "stop",
       .arguments = "[flags]",
       .summary = "Stop a run, as SIGTERM to fleetrun does, and wait until it has ended",
       .flags =
           [] {
             return Flags{{.names = {"--now"}, .help = "Kill the ranks at once, without the grace period"},
                          log_dir_flag()};
           },
       .run = run_stop_command},
      {.name = "signal",
       .arguments = "SIGNAL [flags]",
       .summary = "Send a signal (USR1, HUP, 10, ...) to the ranks of a run",
       .flags =
           [] {
             return Flags{ranks_flag("Send it only to these ranks: 0,3 or 4-7 (default: all)"),
                          log_dir_flag()};
           },
       .choices = {"HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "KILL", "STOP", "CONT"},
       .most_words = 1,
       .run = run_signal_command},
      {.name = "render",
       .arguments = "TARGET [flags] -- [flags of the run] script.py|program|job.json [arguments]",
       .summary = "Print a batch file or manifest that starts a run",
       .details = describe_targets(),
       .flags =
           [] {
             return Flags{
                 {.names = {"--folder"},
                  .argument = "FOLDER",
                  .help =
                      "Absolute path of the folder where the run starts. By default that is the folder of the "
                      "submission, or of the image",
                  .completes = Completes::folders},
                 {.names = {"--fleetrun"},
                  .argument = "PATH",
                  .help =
                      "Path of fleetrun on the nodes. By default fleetrun on PATH; for systemd /usr/bin/fleetrun"},
                 {.names = {"--image"},
                  .argument = "IMAGE",
                  .help = "Container image, for k8s, kubeflow, jobset and volcano"},
                 {.names = {"--queue"},
                  .argument = "NAME",
                  .help = "Partition (slurm) or queue (pbs, lsf, volcano). By default that of the system"}};
           },
       .choices = launch::target_names(),
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .run = run_render_command},
      {.name = "strategy",
       .arguments = "save|load|show [flags] FILE [KEY.PATH=VALUE...] [OUT.prototxt]",
       .summary = "Convert between job files and PaddlePaddle's strategy files (protobuf text)",
       .details =
           "save JOB.json OUT.prototxt writes the strategy of a job for DistributedStrategy.load_from_prototxt; save IN.prototxt "
           "OUT.prototxt writes a strategy file again, for example for another version. OUT may be - for stdout. load FILE.prototxt prints "
           "the keys of a job file for what PaddlePaddle's save_to_prototxt wrote. show FILE prints each field of a strategy file and the "
           "key of a job that it sets, or each strategy key of a job and where it was set. A job file needs no load: its key strategy_file "
           "names the strategy file.",
       .flags =
           [] {
             return Flags{
                 {.names = {"--paddle"},
                  .argument = "2|3",
                  .help =
                      "Version of PaddlePaddle that is to read the file: 2 (2.0) or 3 (default: that of the "
                      "strategy file, 3 for a job)"},
                 {.names = {"--all"},
                  .help = "Write all strategy keys of a job, also those with their defaults"},
                 {.names = {"--partial"},
                  .help = "Leave out values that PaddlePaddle cannot hold, with a warning for each"}};
           },
       .choices = {"save", "load", "show"},
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .run = run_strategy_command},
      {.name = "tune",
       .arguments = "[flags] [flags of the run] JOB.json [KEY.PATH=VALUE...]",
       .summary = "Find the strategy with which the steps of a job take the least time",
       .details =
           "Starts the ranks of the job as a run does, and times real steps with several settings of the strategy in turns. Prints a table, the "
           "fastest strategy for the job file, and the same for PaddlePaddle. Keys that the job sets stay as they are. The result is kept on "
           "this host: the next call, and strategy.auto, take it without timing a step.",
       .flags = tune_flags,
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .ends_flags = true,
       .run = run_tune_command},
      {.name = "eval",
       .arguments = "[flags] [flags of the run] JOB.json|MODEL [DATA] [KEY.PATH=VALUE...]",
       .summary = "Evaluate a trained model: accuracy, each class, confusion matrix, worst images",
       .details =
           "With a job file: the model in output.dir, or model.pretrained, on data.test. With MODEL, which is a model.safetensors, a checkpoint, or "
           "the output.dir of a training: on DATA, a folder with one folder of images for each class, or a list of images. Prints tables, and writes "
           "them to a folder together with the predictions and the confusion matrix as CSV files and a picture.",
       .flags = eval_flags,
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .ends_flags = true,
       .run = run_eval_command},
      {.name = "plan",
       .arguments = "[flags] JOB.json [KEY.PATH=VALUE...]",
       .summary = "Predict memory per rank and time per step for each layout of ranks",
       .details =
           "Starts nothing. A layout has a degree of data parallelism, a sharding stage and a number of pipeline stages. The table has the "
           "fastest layout that fits into the memory first, and says why the others lose. Each rank contributes data.batch_size samples to a step, "
           "or its share of train.global_batch. "
           "The defaults are those of hosts with 8 V100 GPUs; the speeds are what programs reach, not what data sheets say.",
       .flags = plan_flags,
       .completes = Completes::files,
       .most_words = kAnyNumber,
       .run = run_plan_command},
      {.name = "completion",
       .arguments = "bash|zsh|fish",
       .summary = "Print the completion script for a shell",
       // What that script calls; the words after "--" are the typed ones.
       .flags = [] { return Flags{{.names = {"--offers"}}}; },
       .choices = {"bash", "zsh", "fish"},
       .most_words = kAnyNumber,
       .run = run_completion_command},
      {.name = "man", .arguments = "", .summary = "Print the man page", .run = run_man_command},
  };
  return table;
}

}  // namespace fleetrun
