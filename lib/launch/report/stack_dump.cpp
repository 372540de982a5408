#include "launch/report/stack_dump.h"

#include <fcntl.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "launch/plan/program.h"
#include "launch/process/pidfd.h"
#include "launch/process/proc_files.h"
#include "launch/process/spawn.h"

namespace fleetrun::launch {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);  // for debuggers

std::string executable_of(pid_t pid) {
  std::error_code gone;
  return std::filesystem::read_symlink(process_path(pid, "exe"), gone).filename();
}

}  // namespace

StackDump::StackDump(EventLoop& loop, const Environment& environment)
    : loop_(loop), environment_(environment) {}

StackDump::~StackDump() {
  for (const UniqueFd& debugger : debuggers_)
    if (debugger) loop_.forget(debugger.get());
}

std::vector<std::string> StackDump::begin(const std::vector<StackTarget>& targets,
                                          std::function<void()> done) {
  std::vector<std::string> files;
  done_.push_back(std::move(done));
  if (left_ > 0) return files;
  ++dumps_;
  debuggers_.clear();
  for (const StackTarget& target : targets)
    if (start(target)) files.push_back(target.file);
  left_ = debuggers_.size();
  if (left_ == 0)
    loop_.call_at(Clock::now(), [this] { call_done(); });
  else
    end_later();
  return files;
}

void StackDump::end_later() {
  loop_.call_at(Clock::now() + kPatience, [this, dump = dumps_] {
    if (dump != dumps_) return;  // a later one has its own patience
    for (const UniqueFd& debugger : debuggers_)
      if (debugger) send_signal(debugger, SIGKILL);
  });
}

void StackDump::call_done() {
  for (const auto& done : std::exchange(done_, {})) done();
}

bool StackDump::start(const StackTarget& target) {
  const std::vector<std::string> command = stack_command(target.pid, executable_of(target.pid), environment_);
  if (command.empty()) return false;
  const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!target.output || !input) return false;
  Environment environment = environment_;
  environment.set("DEBUGINFOD_URLS", "");  // gdb would ask the network for symbols
  SpawnResult result = spawn({.executable = command.front(),
                              .argv = command,
                              .environment = environment.lines(),
                              .input_fd = input.get(),
                              .output_fd = target.output.get(),
                              .inherited_fds = {}});
  if (result.error != 0) return false;
  const std::size_t index = debuggers_.size();
  debuggers_.push_back(std::move(result.pidfd));
  loop_.watch_readable(debuggers_.back().get(), [this, index] { on_end(index); });
  return true;
}

void StackDump::on_end(std::size_t index) {
  loop_.forget(debuggers_[index].get());
  debuggers_[index].reset();
  if (--left_ == 0) call_done();
}

std::vector<std::string> stack_command(pid_t pid, const std::string& executable,
                                       const Environment& environment) {
  const std::string number = std::to_string(pid);
  if (executable.starts_with("python"))
    if (const auto tool = find_tool("py-spy", environment)) return {*tool, "dump", "--pid", number};
  if (const auto tool = find_tool("gdb", environment))
    return {*tool, "-nx", "-batch", "-p", number, "-ex", "thread apply all backtrace"};
  return {};
}

}  // namespace fleetrun::launch
