// fleetrun-worker: one rank of the embedded runtime. `fleetrun job.json` starts one per device; started by
// hand it is the only rank.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/library_error.h"
#include "base/json/json_reader.h"
#include "base/run/job_text.h"
#include "base/run/progress_page.h"
#include "base/run/rank_env.h"
#include "base/system/crash_trace.h"
#include "base/system/environment.h"
#include "base/system/file.h"
#include "base/system/signal_thread.h"
#include "base/system/standard_descriptors.h"
#include "base/system/standard_output.h"
#include "base/system/steady_output.h"
#include "base/system/unique_fd.h"
#include "base/text/printable.h"
#include "comm/make_communicator.h"
#include "job/parse_job.h"
#include "runtime/checkpoint/requests.h"
#include "runtime/observe/time_book.h"
#include "runtime/training/ranks/agreement.h"
#include "runtime/training/run_job.h"
#include "runtime/training/save/checkpointing.h"
#include "runtime/training/save/export_weights.h"
#include "runtime/training/tuning/step_timer.h"
#include "runtime/training/tuning/tune_job.h"
#include "worker_bench.h"
#include "worker_eval.h"
#include "worker_plan.h"
#include "worker_predict.h"
#include "worker_tune.h"

namespace fleetrun {
namespace {

constexpr const char* kUsage =
    "usage: fleetrun-worker JOB.json [key.path=value ...]\n"
    "       fleetrun-worker --export OUT.safetensors torchvision|paddle JOB.json [key.path=value ...]\n"
    "       fleetrun-worker --export OUT.safetensors torchvision|paddle MODEL.safetensors\n"
    "       fleetrun-worker --tune REQUEST JOB.json [key.path=value ...]\n"
    "       fleetrun-worker --eval FOLDER JOB.json [key.path=value ...]\n"
    "       fleetrun-worker --plan REQUEST JOB.json [key.path=value ...]\n"
    "       fleetrun-worker --predict REQUEST JOB MODEL IMAGE...\n"
    "       fleetrun-worker --bench all_reduce DTYPE ROUNDS WAY BYTES...\n"
    "\n"
    "One rank of the embedded training runtime. `fleetrun JOB.json` starts one for each device and tells it\n"
    "its place by FLEETRUN_* variables; started by hand it trains alone.\n"
    "--export writes the weights that the job starts with or those of a model, and trains nothing (fleetrun export).\n"
    "--plan prints what fleetrun plan prints, and --predict what fleetrun predict prints.\n"
    "--tune, --eval and --bench are what the ranks of fleetrun tune, fleetrun eval and fleetrun bench run.\n";

constexpr std::size_t kMostReportBytes = 16 << 20;  // of log/train.json; ours have about 1,000

bool speaks_for_fleetrun = false;  // the user typed `fleetrun`, which has become this program

// Where std::cout and std::cerr write. They live longer than both.
SteadyOutput& output() {
  static auto* const stream = new SteadyOutput(STDOUT_FILENO);
  return *stream;
}
SteadyOutput& error_output() {
  static auto* const stream = new SteadyOutput(STDERR_FILENO);
  return *stream;
}

// Who speaks in an error: "rank 3", or the program itself when no launcher told it its rank.
std::string who() {
  if (speaks_for_fleetrun) return "fleetrun";
  const auto rank = Environment::of_this_process().get("FLEETRUN_RANK");
  return rank ? "rank " + *rank : "fleetrun-worker";
}

void run_export(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4)
    throw Error(ErrorKind::usage,
                "wanted fleetrun-worker --export OUT.safetensors NAMES JOB.json|MODEL.safetensors");
  const std::string &output = arguments[1], &input = arguments[3];
  const auto names = runtime::parse_weight_names(arguments[2]);
  if (!names)
    throw Error(ErrorKind::usage,
                fmt::format("--names is \"{}\", must be torchvision or paddle", arguments[2]));
  std::vector<std::string> lines;
  if (input.ends_with(".safetensors"))
    lines = runtime::convert_weights(input, *names, output);
  else
    lines = runtime::export_weights(job::parse_job_file(input, {arguments.begin() + 4, arguments.end()}).spec,
                                    *names, output);
  lines.push_back("weights: " + output);
  for (const std::string& line : lines) print_answer(printable(line) + "\n");
}

// At once and with nothing torn down: the other ranks learn of an error by our end, and must not end before us, or they
// would be taken for the cause.
[[noreturn]] void leave(const std::string& words, int code) {
  std::cerr << words << std::flush;
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}

// Nothing is there, or what an attempt of this run before ours wrote. A folder that cannot be read fails when we write to it.
bool may_write(const std::string& path, const std::string& run_id) {
  std::error_code problem;
  const auto found = std::filesystem::symlink_status(path, problem).type();
  if (problem || found == std::filesystem::file_type::not_found) return true;
  if (found != std::filesystem::file_type::regular) return false;
  const JsonDocument report = read_json(read_file(path, kMostReportBytes));
  const JsonMember* const written_by = report.root.find("run_id");
  return written_by != nullptr && written_by->value.text == run_id;
}

// A training does not fail because there is no room for what is said about it.
void write_train_report(const comm::World& world, runtime::TrainReport report) {
  const std::string path = world.log_dir() + "/train.json";
  report.run_id = world.env.run_id;
  try {
    if (!may_write(path, report.run_id))
      throw Error(ErrorKind::create, fmt::format("{} is in the way: this run did not write it", path));
    write_file_atomically(path, runtime::to_json(report));
  } catch (const Error& error) {
    std::cerr << who() << ": " << error.message() << std::endl;
  }
}

void tell(const runtime::TrainReport& report, const comm::World& world) {
  if (!world.env.log_dir.empty()) write_train_report(world, report);
  std::cout << runtime::describe_data(report) << std::endl;
  std::cout << runtime::describe_memory(report) << std::endl;
  const bool was_complete =
      report.steps == report.resumed_at && !report.stopped;  // the training loop said so
  if (!was_complete) std::cout << runtime::describe(report) << std::endl;
  std::cout << runtime::describe_best(report);
  std::cout << runtime::describe_time(report.time, report.timed_ranks) << std::endl;
  if (report.stopped) std::cout << "stopped; the checkpoint is complete" << std::endl;
}

// As the launcher read it, if one started this rank. More words may follow those of the command line.
runtime::JobWith read_job(const RankEnv& env, const std::string& file,
                          const std::vector<std::string>& overrides) {
  std::optional<std::string> handed;
  if (env.job_fd >= 0) handed = read_job_text(UniqueFd(env.job_fd).get());
  return [=](const std::vector<std::string>& settings) {
    std::vector<std::string> words = overrides;
    words.insert(words.end(), settings.begin(), settings.end());
    return handed ? job::parse_handed_job(*handed, file, words) : job::parse_job_file(file, words);
  };
}

runtime::TrainReport train(const runtime::JobWith& job_with, comm::World& world, ProgressPage& page) {
  const job::JobSpec job = job_with({}).spec;
  if (!job.strategy.auto_tune) return runtime::run_job(job, world, page, std::cout);
  page.phase = Phase::loading;
  std::unique_ptr<runtime::Device> device = runtime::make_agreed_device(world, job.strategy);
  const job::JobSpec tuned = runtime::auto_tuned_job({job_with, world, *device, page}, std::cout);
  return runtime::run_job(tuned, world, page, std::cout, std::move(device));
}

// Text of std::cout and std::cerr that the log does not take goes to the page. So the page stays mapped to the end.
ProgressPage& page_that_keeps_lost_text(int fd) {
  ProgressPage& page = *map_inherited_progress_page(fd).release();
  for (SteadyOutput* const stream : {&output(), &error_output()}) stream->keep_lost_in(page.lost_text());
  return page;
}

// `world` is the caller's: an error leaves it connected.
void run(const std::vector<std::string>& arguments, comm::World& world) {
  if (arguments.empty()) throw Error(ErrorKind::usage, "no job file given; wanted fleetrun-worker JOB.json");
  if (arguments.front() == "--help" || arguments.front() == "-h") return print_answer(kUsage);
  if (arguments.front() == "--export") return run_export(arguments);
  if (arguments.front() == "--plan") return run_plan({arguments.begin() + 1, arguments.end()});
  if (arguments.front() == "--predict") {
    speaks_for_fleetrun = true;
    return run_predict({arguments.begin() + 1, arguments.end()});
  }
  if (arguments.front() == "--bench") return run_bench({arguments.begin() + 1, arguments.end()});
  const bool tunes = arguments.front() == "--tune", evaluates = arguments.front() == "--eval";
  if (tunes && arguments.size() < 3)
    throw Error(ErrorKind::usage, "wanted fleetrun-worker --tune REQUEST JOB.json");
  if (evaluates && arguments.size() < 3)
    throw Error(ErrorKind::usage, "wanted fleetrun-worker --eval FOLDER JOB.json");
  const auto file = arguments.begin() + (tunes || evaluates ? 2 : 0);
  const RankEnv env = read_rank_env(Environment::of_this_process());
  ProgressPage& page = page_that_keeps_lost_text(env.progress_fd);
  const runtime::JobWith job_with = read_job(env, *file, {file + 1, arguments.end()});
  job_with({});  // its mistakes are reported before the ranks meet

  take_signals_on_own_thread();
  page.phase = Phase::joining;
  page.beat();
  world = comm::join_world(env);
  if (tunes) return run_tune(arguments[1], job_with, world, page);
  if (evaluates) return run_eval(arguments[1], *file, job_with({}), world, page);
  const runtime::TrainReport report = train(job_with, world, page);
  if (env.rank == 0) tell(report, world);
  page.is_done = !report.stopped;
  if (!report.unsaved.empty())
    throw Error(
        ErrorKind::io,
        fmt::format(
            "the training is done and its weights are saved, but the last checkpoint could not be written: {}",
            report.unsaved));
  // Whoever waits for it sees that it was stopped.
  if (report.stopped) runtime::end_stopped_rank(runtime::kLongestSave);
}

// Of an exception of a library.
Error as_error(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {ErrorKind::os, "memory ran out",
            "a smaller data set or data.batch_size needs less; ulimit -v shows a limit"};
  return error_of_library(error);
}

bool is_done = false;  // main() has a result

// A library has called exit(). OpenMP of gcc does so when it cannot start a thread, after a line that says it, with a code of its own.
void end_by_library() {
  if (is_done) return;
  const Error error(ErrorKind::os, "OpenMP could not start a thread",
                    "ulimit -u, pids.max of the cgroup, or ulimit -v limits the threads");
  leave(error.describe(who()), error.exit_code());
}

}  // namespace
}  // namespace fleetrun

int main(int argc, char** argv) {
  fleetrun::open_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that ulimit -f forbids is an error that names it
  std::cout.rdbuf(&fleetrun::output());
  std::cerr.rdbuf(&fleetrun::error_output());
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  fleetrun::install_crash_trace(fleetrun::who());
  std::atexit(fleetrun::end_by_library);
  fleetrun::comm::World world;
  try {
    fleetrun::run(arguments, world);
    fleetrun::is_done = true;
    return 0;
  } catch (const fleetrun::Error& error) {
    fleetrun::leave(error.describe(fleetrun::who()), error.exit_code());
  } catch (const std::exception& thrown) {
    const fleetrun::Error error = fleetrun::as_error(thrown);
    fleetrun::leave(error.describe(fleetrun::who()), error.exit_code());
  }
}
