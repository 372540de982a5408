// What the workers run: our own worker program for a job file, Python for a script, any other program directly.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"

namespace fleetrun::launch {

enum class ProgramKind { job, python, executable };

struct Program {
  ProgramKind kind = ProgramKind::executable;
  std::string executable;         // a path that exec takes
  std::vector<std::string> argv;  // argv[0] included
};

// What the user wants to run, and in which form.
struct ProgramRequest {
  enum class Form { by_name, script, module, run_path, program };

  std::string name;
  std::vector<std::string> arguments;
  Form form = Form::by_name;
  std::vector<std::string> before_job = {};  // words of our worker program in front of a job file
};
ProgramRequest requested_program(const LaunchOptions& options);

// From the form; if the form is by_name, from the end of the name: .json, .py, or neither.
ProgramKind kind_of(const ProgramRequest& request);

// Our worker program with these arguments. Throws Error(not_found).
Program find_worker(const std::vector<std::string>& arguments);

// Finds the program, and checks that it can be executed. Throws Error(not_found|not_executable), Error(usage) for a job file that torchrun
// would give to Python.
Program find_program(const ProgramRequest& request, const Environment& environment);

// The path of an optional program on PATH; none: it is not there.
std::optional<std::string> find_tool(const std::string& name, const Environment& environment);

// The program run under a wrapper, such as gdb --args. Throws Error(not_found|not_executable).
Program wrap_program(const std::vector<std::string>& wrapper, const Program& program,
                     const Environment& environment);

}  // namespace fleetrun::launch
