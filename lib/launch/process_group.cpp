#include "launch/process_group.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/orphans.h"
#include "launch/pidfd.h"
#include "launch/signals.h"
#include "launch/spawn.h"

namespace fleetrun::launch {
namespace {

constexpr auto kSweepPatience = std::chrono::seconds(5);  // for processes that were killed to be gone

// A worker has a process group of its own: reading the terminal from there would stop it for ever.
UniqueFd worker_input() {
  if (::isatty(STDIN_FILENO) == 0) {
    UniqueFd inherited(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    if (inherited) return inherited;
  }
  UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) throw file_error(errno, "opening", "/dev/null");
  return nothing;
}

}  // namespace

ProcessGroup::ProcessGroup(EventLoop& loop, std::vector<WorkerSpec> workers, std::vector<UniqueFd> logs,
                           ProcessGroupOptions options)
    : loop_(loop),
      workers_(std::move(workers)),
      logs_(std::move(logs)),
      options_(std::move(options)),
      supervisor_(static_cast<int>(workers_.size()), options_.supervisor),
      records_(workers_.size()),
      pidfds_(workers_.size()) {}

ProcessGroup::~ProcessGroup() {
  clean_up();
  if (signals_) loop_.forget(signals_.get());
  if (options_.front_fd >= 0) loop_.forget(options_.front_fd);
}

const Verdict& ProcessGroup::run_until_done() {
  watch_signals();
  watch_front();
  start_all();
  if (!supervisor_.done()) loop_.run();
  clean_up();
  return supervisor_.verdict();
}

void ProcessGroup::watch_signals() {
  std::vector<int> signals = stop_signals();
  signals.push_back(SIGCHLD);
  block_signals(signals);
  signals_ = open_signal_fd(signals);
  loop_.watch_readable(signals_.get(), [this] {
    for (const int number : read_signals(signals_.get())) {
      if (number != SIGCHLD) {
        dispatch(StopRequested{number});
        continue;
      }
      std::vector<pid_t> leaders;
      for (const WorkerRecord& record : records_) leaders.push_back(record.pid);
      reap_orphans(leaders);
    }
  });
}

bool ProcessGroup::stop_requested() const {
  const std::vector<int> signals = read_signals(signals_.get());
  return std::any_of(signals.begin(), signals.end(), [](int number) { return number != SIGCHLD; });
}

void ProcessGroup::watch_front() {
  if (options_.front_fd < 0) return;
  loop_.watch_readable(options_.front_fd, [this] {  // nobody writes there: it can only be the end
    loop_.forget(options_.front_fd);
    dispatch(FrontLost{});
  });
}

void ProcessGroup::start_all() {
  const UniqueFd input = worker_input();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const WorkerSpec& worker = workers_[i];
    records_[i].started = std::chrono::system_clock::now();
    SpawnResult result = spawn({.executable = worker.executable,
                                .argv = worker.argv,
                                .environment = worker.environment.lines(),
                                .input_fd = input.get(),
                                .output_fd = logs_[i].get(),
                                .inherited_fds = worker.inherited_fds});
    if (result.error != 0) {
      dispatch(SpawnFailed{static_cast<int>(i), result.error});
      return;
    }
    records_[i].pid = result.pid;
    pidfds_[i] = std::move(result.pidfd);
    logs_[i].reset();
    loop_.watch_readable(pidfds_[i].get(), [this, i] { on_exit(i); });
  }
}

// The leader stays a zombie until clean_up, so that its number still means its process group.
void ProcessGroup::on_exit(std::size_t rank) {
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfds_[rank].get()), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0)
    return;
  records_[rank].ended = std::chrono::system_clock::now();
  loop_.forget(pidfds_[rank].get());
  pidfds_[rank].reset();
  dispatch(WorkerExited{static_cast<int>(rank), ExitStatus::from_siginfo(info)});
}

void ProcessGroup::dispatch(const Event& event) {
  for (const Action& action : supervisor_.on(event, Clock::now()))
    std::visit([this](const auto& what) { act(what); }, action);
  if (options_.observe) options_.observe(event, supervisor_.verdict());
  if (supervisor_.done()) loop_.stop();
}

// A stopped process gets its SIGTERM only when it goes on.
void ProcessGroup::act(const Terminate& action) {
  const UniqueFd& pidfd = pidfds_.at(static_cast<std::size_t>(action.rank));
  if (!pidfd) return;
  send_signal(pidfd, SIGTERM);
  send_signal(pidfd, SIGCONT);
}

void ProcessGroup::act(const Kill& action) {
  const auto rank = static_cast<std::size_t>(action.rank);
  if (pidfds_.at(rank)) send_signal(pidfds_[rank], SIGKILL);
  if (records_[rank].pid > 0) ::killpg(records_[rank].pid, SIGKILL);  // unreaped: see on_exit
}

void ProcessGroup::act(const WakeAt& action) {
  loop_.call_at(action.time, [this] { dispatch(Woke{}); });
}

void ProcessGroup::clean_up() {
  if (std::exchange(clean_, true)) return;
  for (UniqueFd& pidfd : pidfds_) {
    if (pidfd) loop_.forget(pidfd.get());
    pidfd.reset();
  }
  for (const WorkerRecord& record : records_)
    if (record.pid > 0) ::killpg(record.pid, SIGKILL);  // unreaped so far: see on_exit
  survivors_ = end_all_children(kSweepPatience);
}

}  // namespace fleetrun::launch
