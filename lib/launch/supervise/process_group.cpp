#include "launch/supervise/process_group.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "launch/process/orphans.h"
#include "launch/process/pidfd.h"
#include "launch/process/proc_files.h"
#include "launch/process/spawn.h"

namespace fleetrun::launch {
namespace {

constexpr auto kSweepPatience = std::chrono::seconds(5);  // for processes that were killed to be gone
constexpr auto kBeat = std::chrono::seconds(1);
constexpr auto kLateBeat = std::chrono::seconds(1);  // later than this, and somebody stopped us

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

std::vector<SpawnRequest> spawn_requests(const Attempt& attempt, int input_fd, int cgroup_fd) {
  std::vector<SpawnRequest> requests;
  for (std::size_t i = 0; i < attempt.workers.size(); ++i) {
    const WorkerSpec& worker = attempt.workers[i];
    requests.push_back({.executable = worker.executable,
                        .argv = worker.argv,
                        .environment = worker.environment.lines(),
                        .input_fd = input_fd,
                        .output_fd = attempt.logs[i].get(),
                        .error_fd = attempt.error_logs[i].get(),
                        .cgroup_fd = cgroup_fd,
                        .cpus = worker.cpus,
                        .inherited_fds = worker.inherited_fds});
  }
  return requests;
}

bool can_be_stopped(const ProcessStat& stat) {
  return std::string_view("TtZX").find(stat.state) == std::string_view::npos;
}

}  // namespace

ProcessGroup::ProcessGroup(EventLoop& loop, int ranks, ProcessGroupOptions options)
    : loop_(loop),
      options_(std::move(options)),
      supervisor_(ranks, options_.supervisor),
      records_(static_cast<std::size_t>(ranks)),
      pidfds_(static_cast<std::size_t>(ranks)),
      sent_(static_cast<std::size_t>(ranks)) {
  loop_.watch_readable(deaths_.fd(), [this] {
    for (const std::size_t rank : deaths_.take()) on_exit(rank);
  });
}

ProcessGroup::~ProcessGroup() {
  end_processes();
  loop_.forget(deaths_.fd());
  if (signals_) loop_.forget(signals_.get());
  if (options_.front_fd >= 0) loop_.forget(options_.front_fd);
}

const Verdict& ProcessGroup::run_until_done() {
  watch_signals();
  watch_front();
  beat();
  perform(supervisor_.start(Clock::now()));
  if (!supervisor_.done()) loop_.run();
  end_processes();
  return supervisor_.verdict();
}

void ProcessGroup::watch_signals() {
  const std::vector<int> signals = handled_signals();
  block_signals(signals);
  signals_ = open_signal_fd(signals);
  loop_.watch_readable(signals_.get(), [this] {
    for (const ReceivedSignal& signal : read_signals(signals_.get())) on_signal(signal);
  });
}

void ProcessGroup::on_signal(const ReceivedSignal& signal) {
  if (signal.number != SIGCHLD) {
    if (!repeats_.is_repeat(signal, Clock::now())) tell(SignalReceived{signal.number});
    return;
  }
  std::vector<pid_t> leaders;
  for (const WorkerRecord& record : records_) leaders.push_back(record.pid);
  reap_orphans(leaders);
}

// A run that goes on, with another attempt, handles the signals when the loop comes to them.
bool ProcessGroup::stop_requested() {
  bool requested = false;
  for (const ReceivedSignal& signal : read_signals(signals_.get())) {
    const bool ends = ends_a_run(signal.number);
    requested = requested || (ends && !(supervisor_.done() && repeats_.is_repeat(signal, Clock::now())));
    if (!supervisor_.done()) loop_.call_at(Clock::now(), [this, signal] { on_signal(signal); });
  }
  return requested;
}

void ProcessGroup::watch_front() {
  if (options_.front_fd < 0) return;
  loop_.watch_readable(options_.front_fd, [this] {  // nobody writes there: it can only be the end
    loop_.forget(options_.front_fd);
    tell(FrontLost{});
  });
}

void ProcessGroup::beat() {
  notice_lost_time();
  loop_.call_at(awake_at_ + kBeat, [this] { beat(); });
}

// Before any event: a deadline that passed while we stood still has not come.
void ProcessGroup::notice_lost_time() {
  const TimePoint now = Clock::now();
  const Clock::duration since = now - std::exchange(awake_at_, now);
  if (since > kBeat + kLateBeat) perform(supervisor_.on(StoodStill{since - kBeat}, now));
}

void ProcessGroup::tell(const Event& event) {
  if (supervisor_.done()) return;
  notice_lost_time();
  const Actions actions = supervisor_.on(event, Clock::now());
  if (options_.observe) options_.observe(event, supervisor_.verdict());
  perform(actions);
  if (supervisor_.done()) loop_.stop();
}

bool ProcessGroup::send(int rank, int signal, const std::string& sender) {
  const auto index = static_cast<std::size_t>(rank);
  const UniqueFd& pidfd = pidfds_.at(index);
  if (!pidfd || !send_signal(pidfd, signal)) return false;
  sent_.at(index) = {signal, sender};
  return true;
}

void ProcessGroup::perform(const Actions& actions) {
  for (const Action& action : actions) std::visit([this](const auto& what) { act(what); }, action);
  if (left_alone_.empty()) return;
  std::vector<int> ranks;
  for (const PassOn& left : left_alone_) ranks.push_back(left.rank);
  options_.say(fmt::format("{} was not passed on to {} {}, which it would end",
                           describe_signal(std::exchange(left_alone_, {}).front().signal),
                           ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", ")));
}

void ProcessGroup::act(const StartAttempt& action) {
  Attempt attempt = options_.prepare(action.attempt);
  const UniqueFd input = worker_input();
  may_have_processes_ = true;
  if (options_.use_cgroup) cgroup_ = RunCgroup::make();
  records_.assign(records_.size(), {});
  sent_.assign(sent_.size(), {});
  const Moment started = Moment::now();
  std::vector<SpawnResult> results =
      spawn_all(spawn_requests(attempt, input.get(), cgroup_ ? cgroup_->folder_fd() : -1), &deaths_);
  if (cgroup_) cgroup_->post_guard();  // while the workers load their programs
  for (std::size_t i = 0; i < results.size(); ++i) {
    records_[i].started = started;
    if (results[i].error != 0) {
      tell(SpawnFailed{static_cast<int>(i), results[i].error});
      return;
    }
    records_[i].pid = results[i].pid;
    pidfds_[i] = std::move(results[i].pidfd);
  }
}

void ProcessGroup::act(const EndAttempt& action) {
  end_processes();
  cgroup_.reset();
  options_.attempt_ended(action.delay);
}

// The leader stays a zombie until end_processes, so that its number still means its process group.
void ProcessGroup::on_exit(std::size_t rank) {
  if (!pidfds_[rank]) return;
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfds_[rank].get()), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    throw Error(ErrorKind::internal,
                fmt::format("looking how rank {} ended: {}", rank, describe_errno(errno)));
  if (info.si_pid == 0) return;
  records_[rank].ended = Moment::now();
  records_[rank].cpu_seconds = read_own_cpu_seconds(records_[rank].pid);
  deaths_.forget(pidfds_[rank]);
  pidfds_[rank].reset();
  const ExitStatus status = ExitStatus::from_siginfo(info);
  const bool asked = status.how == ExitStatus::How::signaled && status.value == sent_[rank].signal;
  tell(WorkerExited{static_cast<int>(rank), status, asked ? sent_[rank].sender : ""});
}

// A stopped process gets its SIGTERM only when it goes on.
void ProcessGroup::act(const Terminate& action) {
  const UniqueFd& pidfd = pidfds_.at(static_cast<std::size_t>(action.rank));
  if (!pidfd) return;
  send_signal(pidfd, action.signal);
  signal_group(action.rank, SIGCONT);
  release();
}

void ProcessGroup::act(const TerminateGroup& action) {
  signal_group(action.rank, SIGTERM);
  signal_group(action.rank, SIGCONT);
  release();
}

void ProcessGroup::act(const Kill& action) {
  const UniqueFd& pidfd = pidfds_.at(static_cast<std::size_t>(action.rank));
  if (pidfd) send_signal(pidfd, SIGKILL);
  signal_group(action.rank, SIGKILL);
}

void ProcessGroup::act(const PassOn& action) {
  const auto rank = static_cast<std::size_t>(action.rank);
  if (!pidfds_.at(rank)) return;
  if (would_end(records_[rank].pid, action.signal))
    left_alone_.push_back(action);
  else
    send_signal(pidfds_[rank], action.signal);
}

// A launcher below us stops its ranks at this signal, and its clocks.
void ProcessGroup::act(const Pause& action) { signal_group(action.rank, SIGTSTP); }

// Those that ignore SIGTSTP, or have a group or session of their own. A process may make another one until it is stopped,
// so this looks again until nothing is new.
void ProcessGroup::act(const Hold&) {
  const pid_t guard = cgroup_ ? cgroup_->guard() : -1;
  for (bool found = true; found;) {
    found = false;
    for (const pid_t pid : list_process_tree(::getpid())) {
      const auto stat = read_process_stat(pid);
      if (pid == ::getpid() || pid == guard || held_.contains(pid) || !stat || !can_be_stopped(*stat))
        continue;
      UniqueFd pidfd = open_pidfd(pid);
      if (!pidfd || !send_signal(pidfd, SIGSTOP)) continue;
      held_[pid] = std::move(pidfd);
      found = true;
    }
  }
}

void ProcessGroup::release() {
  for (const auto& [pid, pidfd] : std::exchange(held_, {})) send_signal(pidfd, SIGCONT);
}

void ProcessGroup::act(const Resume& action) {
  signal_group(action.rank, SIGCONT);
  release();
}

void ProcessGroup::act(const CallRoll&) { options_.call_roll(); }

void ProcessGroup::act(const WakeAt& action) {
  loop_.call_at(action.time, [this] { tell(Woke{}); });
}

void ProcessGroup::signal_group(int rank, int signal) const {
  const pid_t leader = records_.at(static_cast<std::size_t>(rank)).pid;
  if (leader > 0) ::killpg(leader, signal);  // unreaped: see on_exit
}

void ProcessGroup::end_processes() {
  if (!std::exchange(may_have_processes_, false)) return;
  for (UniqueFd& pidfd : pidfds_) {
    deaths_.forget(pidfd);
    pidfd.reset();
  }
  held_.clear();
  if (cgroup_) cgroup_->kill_all();
  for (int rank = 0; rank < std::ssize(records_); ++rank) signal_group(rank, SIGKILL);
  survivors_ = end_all_children(std::min<Clock::duration>(kSweepPatience, options_.supervisor.kill_wait),
                                cgroup_ ? std::vector{cgroup_->guard()} : std::vector<pid_t>());
}

}  // namespace fleetrun::launch
