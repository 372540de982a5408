#include <unistd.h>

#include <cerrno>
#include <optional>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/standard_output.h"
#include "commands.h"
#include "job/parse_job.h"
#include "launch/plan/program.h"

namespace fleetrun {
namespace {

constexpr const char* kHelp = R"(usage: fleetrun export JOB.json [KEY.PATH=VALUE...] OUT.safetensors
       fleetrun export --help

Writes the weights that the job's model starts with, by train.seed or from model.pretrained: parameters and
running statistics by PyTorch's names, f32. With model.input_shape and model.class_dim no data set is opened.
A training writes the trained weights to model.safetensors in its output.dir by itself.
)";

constexpr std::string_view kEnding = ".safetensors";

struct ExportOptions {
  std::string job;
  std::vector<std::string> overrides;
  std::string output;
};

bool asks_for_help(const std::vector<std::string>& arguments) {
  return !arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h");
}

ExportOptions parse_export_options(const std::vector<std::string>& arguments) {
  const auto refuse = [](const std::string& message) {
    return Error(ErrorKind::usage, message, "fleetrun export --help");
  };
  if (arguments.empty()) throw refuse("found no job file, wanted one");
  if (arguments.front().starts_with('-')) throw refuse("found the unknown flag " + arguments.front());
  const std::string& last = arguments.back();
  if (arguments.size() < 2 || !last.ends_with(kEnding) || last.find('=') != std::string::npos)
    throw refuse(fmt::format("found {} as the last word, wanted a file to write, OUT{}", last, kEnding));
  return {
      .job = arguments.front(), .overrides = {arguments.begin() + 1, arguments.end() - 1}, .output = last};
}

// Becomes the worker program, which has the models.
[[noreturn]] void become(const launch::Program& program) {
  std::vector<char*> words;
  for (const std::string& word : program.argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(program.executable.c_str(), words.data());
  throw Error(ErrorKind::os, fmt::format("starting {}: {}", program.executable, describe_errno(errno)));
}

}  // namespace

int run_export_command(const std::vector<std::string>& arguments) {
  if (asks_for_help(arguments)) {
    print_answer(kHelp);
    return 0;
  }
  const ExportOptions options = parse_export_options(arguments);
  const job::ParsedJob job = job::parse_job_file(options.job, options.overrides);
  for (const std::string& note : job.notes) log_line("fleetrun", "note: " + note);
  launch::Program program = launch::find_worker({"--export", options.output, options.job});
  program.argv.insert(program.argv.end(), options.overrides.begin(), options.overrides.end());
  become(program);
}

}  // namespace fleetrun
