#include "launch/plan/program.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "base/text/suggest.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";  // as execvp without PATH, and local
constexpr const char* kWorkerProgram = "fleetrun-worker";
constexpr std::size_t kMostOfFirstLine = 255;  // bytes that Linux looks at for "#!"

using Form = ProgramRequest::Form;

// --run_path: the script and its arguments follow.
constexpr const char* kRunPath =
    "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')";

bool is_file(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

bool is_folder(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

// A pipe, a socket or a device: all ranks could not read the same from it.
void refuse_special_file(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    throw Error(ErrorKind::not_executable, fmt::format("{} is not a regular file", path));
}

// stat(2) says of what is in such a folder neither that it is there nor that it is not.
void refuse_closed_folder(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 || errno != EACCES) return;
  throw Error(ErrorKind::not_executable, fmt::format("{} is in a folder that may not be searched", path),
              "ls -ld shows the mode of a folder; this user needs x on it");
}

bool is_executable(const std::string& path) { return is_file(path) && ::access(path.c_str(), X_OK) == 0; }

bool is_on_noexec_mount(const std::string& path) {
  struct statvfs facts {};
  return ::statvfs(path.c_str(), &facts) == 0 && (facts.f_flag & ST_NOEXEC) != 0;
}

// "/usr/bin/python3 -u" of a file that begins with "#!/usr/bin/python3 -u"; "" for any other file.
std::string interpreter_line_of(const std::string& path) {
  std::string line(kMostOfFirstLine, '\0');
  std::ifstream file(path);
  file.read(line.data(), std::ssize(line));
  line.resize(static_cast<std::size_t>(file.gcount()));
  if (!line.starts_with("#!")) return "";
  line = line.substr(2, line.find('\n') - 2);
  const auto start = line.find_first_not_of(" \t");
  return start == std::string::npos ? "" : line.substr(start);
}

// The kernel's word for a missing interpreter is "No such file", as if the script were missing.
// A carriage return at the end of the line belongs to the interpreter's name, or to that of the program which env(1) looks for.
void check_interpreter(const std::string& path) {
  const std::string line = interpreter_line_of(path);
  const std::size_t end = line.find_first_of(" \t");
  const std::string interpreter = line.substr(0, end);
  const bool exists = interpreter.empty() || ::access(interpreter.c_str(), F_OK) == 0;
  const bool of_env = interpreter.ends_with("/env") && line.ends_with('\r') && line.rfind(' ') == end &&
                      line.find(" -") == std::string::npos;
  if (exists && !of_env) return;
  std::string shown = of_env ? line : interpreter;
  if (!shown.ends_with('\r'))
    throw Error(ErrorKind::not_found, fmt::format("{} needs the interpreter {}, which does not exist", path,
                                                  printable(interpreter)));
  shown.pop_back();
  throw Error(
      ErrorKind::not_found,
      fmt::format(
          "the line #!{} of {} ends with a carriage return, as on Windows, so Linux does not find the interpreter",
          printable(shown), path),
      fmt::format("sed -i 's/\\r$//' {} removes the carriage returns", path));
}

// How to start a file that the kernel cannot start.
std::string hint_of_start(const std::string& path) {
  if (path.ends_with(".pyz") || path.ends_with(".pyc")) return fmt::format("fleetrun -- python3 {}", path);
  if (path.ends_with(".ipynb"))
    return fmt::format("jupyter nbconvert --to script {} makes a script of it", path);
  return fmt::format("chmod +x {} makes it so", path);
}

void check_executable(const std::string& path) {
  if (is_executable(path)) return check_interpreter(path);
  if (is_on_noexec_mount(path))
    throw Error(ErrorKind::not_executable,
                fmt::format("{} is on a file system that is mounted noexec: no program there can run", path),
                "copy it to another file system");
  throw Error(ErrorKind::not_executable, fmt::format("{} is not executable", path), hint_of_start(path));
}

// The first executable file on PATH; else the first file there is, so that its mode can be complained about.
std::optional<std::string> search_path(const std::string& name, const Environment& environment) {
  if (auto tool = find_tool(name, environment)) return tool;
  std::optional<std::string> found;
  std::istringstream folders(environment.get_or("PATH", kDefaultPath));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (!found && is_file(path)) found = path;
  }
  const std::string here = "./" + name;
  if (!found && is_file(here)) found = here;
  return found;
}

// "dang.py is a link to nosuch.py, which does not exist"
void refuse_dangling_link(const std::string& path) {
  std::error_code problem;
  const std::filesystem::path target = std::filesystem::read_symlink(path, problem);
  if (problem || std::filesystem::exists(path, problem)) return;
  if (problem == std::errc::too_many_symbolic_link_levels)
    throw Error(ErrorKind::not_found, fmt::format("{} is a link to {}, and this chain of links is a circle",
                                                  printable(path), printable(target.string())));
  throw Error(ErrorKind::not_found, fmt::format("{} is a link to {}, which does not exist", printable(path),
                                                printable(target.string())));
}

std::string find_executable(const std::string& name, const Environment& environment) {
  const bool is_path = name.find('/') != std::string::npos;
  const std::optional<std::string> path = is_path ? std::optional(name) : search_path(name, environment);
  const std::string shown = path.value_or(name);
  if (is_folder(shown)) throw Error(ErrorKind::not_executable, fmt::format("{} is a folder", shown));
  if (is_path) refuse_special_file(name);
  if (is_path) refuse_closed_folder(name);
  if (is_path) refuse_dangling_link(name);
  if (!path || !is_file(*path))
    throw Error(ErrorKind::not_found,
                is_path
                    ? fmt::format("the program {} does not exist", printable(name))
                    : fmt::format("the program {} is neither on PATH nor in this folder", printable(name)));
  check_executable(*path);
  return *path;
}

// "; did you mean train.py?": a script that lies there and has nearly the same name, or nothing.
std::string suggest_script(const std::string& path) {
  const std::filesystem::path wanted(path);
  const std::filesystem::path folder = wanted.has_parent_path() ? wanted.parent_path() : ".";
  std::vector<std::string> scripts;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
    if (entry.path().extension() == wanted.extension() && entry.exists(problem))
      scripts.push_back(entry.path().filename());
  std::sort(scripts.begin(), scripts.end());  // a folder has no order
  const std::optional<std::string> meant = closest(wanted.filename().string(), scripts);
  if (!meant) return "";
  return fmt::format("; did you mean {}?", (wanted.parent_path() / *meant).string());
}

void check_script(const std::string& path) {
  if (is_folder(path)) throw Error(ErrorKind::not_executable, fmt::format("{} is a folder", path));
  refuse_special_file(path);
  refuse_closed_folder(path);
  refuse_dangling_link(path);
  if (!is_file(path))
    throw Error(ErrorKind::not_found,
                fmt::format("the script {} does not exist{}", printable(path), suggest_script(path)));
  if (::access(path.c_str(), R_OK) != 0)
    throw Error(ErrorKind::not_executable, fmt::format("the script {} may not be read", path));
}

// Beside the launcher in a build tree, in libexec/fleetrun of an installation.
std::string find_worker_program() {
  std::error_code problem;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", problem).parent_path();
  if (problem)
    throw Error(
        ErrorKind::os,
        fmt::format("reading /proc/self/exe, to find the worker program beside it: {}", problem.message()),
        "a job file needs /proc");
  const auto beside = folder / kWorkerProgram;
  const auto installed = folder.parent_path() / FLEETRUN_WORKER_FOLDER / kWorkerProgram;
  for (const auto& path : {beside, installed})
    if (is_executable(path)) return path;
  for (const auto& path : {beside, installed})
    if (is_file(path))
      check_executable(path);  // throws: the file is there, and what is wrong with it is known
  throw Error(ErrorKind::not_found, fmt::format("found no worker program at {} or {}",
                                                printable(beside.string()), printable(installed.string())));
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

ProgramRequest requested_program(const LaunchOptions& options) {
  ProgramRequest request = {.name = options.program, .arguments = options.arguments};
  if (options.called_as == CalledAs::torchrun) request.form = Form::script;
  if (options.no_python.value) request.form = Form::program;
  if (options.module.value) request.form = Form::module;
  if (options.run_path.value) request.form = Form::run_path;
  if (!options.tune.value.empty()) request.before_job = {"--tune", options.tune.value};
  if (!options.eval.value.empty()) request.before_job = {"--eval", options.eval.value};
  return request;
}

ProgramKind kind_of(const ProgramRequest& request) {
  if (request.form == Form::program) return ProgramKind::executable;
  if (request.form != Form::by_name) return ProgramKind::python;
  if (request.name.ends_with(".json")) return ProgramKind::job;
  return request.name.ends_with(".py") ? ProgramKind::python : ProgramKind::executable;
}

Program find_worker(const std::vector<std::string>& arguments) {
  return {ProgramKind::job, find_worker_program(), joined({kWorkerProgram}, arguments)};
}

Program find_program(const ProgramRequest& request, const Environment& environment) {
  const ProgramKind kind = kind_of(request);
  if (kind == ProgramKind::job)
    return find_worker(joined(joined(request.before_job, {request.name}), request.arguments));
  if (kind == ProgramKind::executable)
    return {kind, find_executable(request.name, environment), joined({request.name}, request.arguments)};
  // Python takes most job files for an expression, and succeeds.
  if (request.form == Form::script && request.name.ends_with(".json"))
    throw Error(ErrorKind::usage,
                fmt::format("{} is a job file, and torchrun gives its program to Python", request.name),
                "call this program as fleetrun to train it");
  if (request.form != Form::module) check_script(request.name);
  const std::string python = environment.get_or("PYTHON_EXEC", "python3");  // as for torchrun
  std::vector<std::string> argv = {python, "-u"};
  if (request.form == Form::module) argv.emplace_back("-m");
  if (request.form == Form::run_path) argv.insert(argv.end(), {"-c", kRunPath});
  argv.push_back(request.name);
  return {kind, find_executable(python, environment), joined(std::move(argv), request.arguments)};
}

std::optional<std::string> find_tool(const std::string& name, const Environment& environment) {
  std::istringstream folders(environment.get_or("PATH", kDefaultPath));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (is_executable(path)) return path;
  }
  return std::nullopt;
}

Program wrap_program(const std::vector<std::string>& wrapper, const Program& program,
                     const Environment& environment) {
  std::vector<std::string> argv = joined(wrapper, program.argv);
  argv.at(wrapper.size()) = program.executable;
  return {program.kind, find_executable(wrapper.front(), environment), std::move(argv)};
}

}  // namespace fleetrun::launch
