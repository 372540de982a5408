#include "launch/report/stack_dump.h"

#include <filesystem>
#include <utility>

#include "base/error/error.h"
#include "launch/plan/program.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);  // for debuggers
constexpr std::uint64_t kMostOutput = 64 << 20;       // bytes; the stacks of 10,000 threads take less

std::string executable_of(pid_t pid) {
  std::error_code gone;
  return std::filesystem::read_symlink(process_path(pid, "exe"), gone).filename();
}

}  // namespace

StackDump::StackDump(EventLoop& loop, const Environment& environment)
    : loop_(loop), environment_(environment) {}

StackDump::~StackDump() = default;

std::vector<std::string> StackDump::begin(const std::vector<StackTarget>& targets,
                                          std::function<void()> done) {
  std::vector<std::string> files;
  done_.push_back(std::move(done));
  if (left_ > 0) return files;
  debuggers_.clear();
  for (const StackTarget& target : targets)
    if (start(target)) files.push_back(target.file);
  left_ = debuggers_.size();
  if (left_ == 0) loop_.call_at(Clock::now(), [this] { call_done(); });
  return files;
}

void StackDump::call_done() {
  for (const auto& done : std::exchange(done_, {})) done();
}

bool StackDump::start(const StackTarget& target) {
  const std::vector<std::string> command = stack_command(target.pid, executable_of(target.pid), environment_);
  if (command.empty()) return false;
  if (!target.output) return false;
  Environment environment = environment_;
  environment.set("DEBUGINFOD_URLS", "");  // gdb would ask the network for symbols
  const HelperRequest request = {.command = command,
                                 .environment = environment,
                                 .output_fd = target.output.get(),
                                 .most_output = kMostOutput,
                                 .time_limit = kPatience};
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
