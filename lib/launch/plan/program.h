// What the workers run: our own worker program for a job file, Python for a script, anything else as it is.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/launch_options.h"

namespace fleetrun::launch {

enum class ProgramKind { job, python, executable };

struct Program {
  ProgramKind kind = ProgramKind::executable;
  std::string executable;         // a path that exec takes
  std::vector<std::string> argv;  // argv[0] included
};

// What the user gave to run, and in which of torchrun's ways, if in one of them.
struct ProgramRequest {
  enum class Form { by_name, script, module, run_path, program };

  std::string name;
  std::vector<std::string> arguments;
  Form form = Form::by_name;
};
ProgramRequest requested_program(const LaunchOptions& options);

// By form, else by the end of its name: .json, .py, or neither.
ProgramKind kind_of(const ProgramRequest& request);

// Our worker program with these arguments. Throws Error(not_found).
Program find_worker(const std::vector<std::string>& arguments);

// Finds what is to be executed and looks whether it can be. Throws Error(not_found|not_executable).
Program find_program(const ProgramRequest& request, const Environment& environment);

// A program on PATH that other parts of fleetrun can do without.
std::optional<std::string> find_tool(const std::string& name, const Environment& environment);

// The program with the words of another one in front of it. Throws Error(not_found|not_executable).
Program wrap_program(const std::vector<std::string>& wrapper, const Program& program,
                     const Environment& environment);

}  // namespace fleetrun::launch
