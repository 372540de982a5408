#include "launch/report/stack_dump.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error/error.h"
#include "launch/plan/program.h"
#include "launch/process/proc_files.h"
#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

constexpr auto kPatienceForDevice =
    std::chrono::seconds(10);                    // a debugger can stop no process that waits for one
constexpr std::uint64_t kMostOutput = 64 << 20;  // bytes; the stacks of 10,000 threads take less

std::string executable_of(pid_t pid) {
  std::error_code gone;
  return std::filesystem::read_symlink(process_path(pid, "exe"), gone).filename();
}

bool is_python(pid_t pid) { return executable_of(pid).starts_with("python"); }

// A shell or debugger may stand in front of Python.
pid_t python_of(pid_t leader) {
  const std::vector<pid_t> tree = list_process_tree(leader);
  const auto found = std::find_if(tree.begin(), tree.end(), is_python);
  return found == tree.end() ? leader : *found;
}

Clock::duration patience_with(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat && stat->state == 'D' ? Clock::duration(kPatienceForDevice)
                                    : Clock::duration(StackDump::kPatience);
}

}  // namespace

StackDump::StackDump(EventLoop& loop, const Environment& environment)
    : loop_(loop), environment_(environment) {}

StackDump::~StackDump() = default;

std::vector<std::string> StackDump::begin(std::vector<StackTarget> targets, std::function<void()> done) {
  std::vector<std::string> files;
  done_.push_back(std::move(done));
  if (left_ > 0) return files;
  debuggers_.clear();
  asked_.clear();
  for (StackTarget& target : targets)
    if (start(target)) files.push_back(target.file);
  left_ = debuggers_.size() + asked_.size();
  if (left_ == 0) loop_.call_at(Clock::now(), [this] { call_done(); });
  return files;
}

void StackDump::call_done() {
  for (const auto& done : std::exchange(done_, {})) done();
}

bool StackDump::start(StackTarget& target) {
  if (!target.output) return false;
  target.pid = python_of(target.pid);
  const bool python = is_python(target.pid);
  if (python && start_debugger(stack_command(target.pid, true, environment_), target)) return true;
  if (!python || !target.log || !catches(target.pid, kStackSignal))
    return start_debugger(stack_command(target.pid, false, environment_), target);
  asked_.push_back(std::make_unique<StacksBySignal>(loop_, target.pid, std::move(target.log),
                                                    std::move(target.output), [this] { on_end(); }));
  return true;
}

bool StackDump::start_debugger(const std::vector<std::string>& command, const StackTarget& target) {
  if (command.empty()) return false;
  Environment environment = environment_;
  environment.set("DEBUGINFOD_URLS", "");  // gdb would ask the network for symbols
  const HelperRequest request = {.command = command,
                                 .environment = environment,
                                 .output_fd = target.output.get(),
                                 .most_output = kMostOutput,
                                 .time_limit = patience_with(target.pid)};
  try {
    debuggers_.push_back(std::make_unique<HelperProgram>(loop_, request, [this] { on_end(); }));
  } catch (const Error&) {
    return false;  // stacks are a bonus
  }
  return true;
}

void StackDump::on_end() {
  if (--left_ == 0) call_done();
}

std::vector<std::string> stack_command(pid_t pid, bool python, const Environment& environment) {
  const std::string number = std::to_string(pid);
  if (python) {
    if (const auto tool = find_tool("py-spy", environment)) return {*tool, "dump", "--pid", number};
  } else if (const auto tool = find_tool("gdb", environment)) {
    return {*tool, "-nx", "-batch", "-p", number, "-ex", "thread apply all backtrace"};
  }
  return {};
}

}  // namespace fleetrun::launch
