#include "launch/process/helper_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/process/pidfd.h"
#include "launch/process/proc_files.h"
#include "launch/process/start_program.h"

namespace fleetrun::launch {
namespace {

// Nobody may wait for the id that it returns, because reap_orphans() reaps every child that is not a rank.
pid_t start(EventLoop& loop, const HelperRequest& request) {
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) throw Error(ErrorKind::os, fmt::format("opening /dev/null: {}", describe_errno(errno)));
  return start_program(loop, {.command = request.command,
                              .environment = request.environment.lines(),
                              .input_fd = nothing.get(),
                              .output_fd = request.output_fd,
                              .error_fd = request.output_fd,
                              .most_output = request.most_output});
}

}  // namespace

HelperProgram::HelperProgram(EventLoop& loop, const HelperRequest& request, std::function<void()> on_end)
    : loop_(loop), on_end_(std::move(on_end)), pid_(start(loop, request)), late_(loop) {
  pidfd_ = open_pidfd(pid_);
  if (!pidfd_)
    throw Error(ErrorKind::os,
                fmt::format("watching {}: {}", request.command.front(), describe_errno(errno)));
  loop_.watch_readable(pidfd_.get(), [this] { end(); });
  late_.call_at(Clock::now() + request.time_limit, [this] { kill_tree(); });
}

HelperProgram::~HelperProgram() {
  if (pidfd_) loop_.forget(pidfd_.get());
}

// The numbers are right while it has not ended.
void HelperProgram::kill_tree() const {
  if (!pidfd_ || !send_signal(pidfd_, 0)) return;
  for (const pid_t pid : list_process_tree(pid_))
    if (const UniqueFd one = open_pidfd(pid)) send_signal(one, SIGKILL);
  ::kill(-pid_, SIGKILL);  // those that /proc did not show
}

void HelperProgram::end() {
  loop_.forget(pidfd_.get());
  pidfd_.reset();
  late_.cancel();
  const auto on_end = std::move(on_end_);  // which may end this object
  on_end();
}

}  // namespace fleetrun::launch
