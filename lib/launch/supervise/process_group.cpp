#include "launch/supervise/process_group.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "base/text/name_ranks.h"
#include "launch/process/orphans.h"
#include "launch/process/pidfd.h"
#include "launch/process/proc_files.h"
#include "launch/process/shells.h"
#include "launch/process/signals.h"
#include "launch/process/spawn.h"

namespace fleetrun::launch {
namespace {

constexpr auto kHandled = std::chrono::seconds(1);  // longer than a handler runs that ends its program
constexpr auto kLookAtLeft = std::chrono::milliseconds(20);
constexpr auto kSweepPatience = std::chrono::seconds(5);  // for processes that were killed to be gone

// This rank has our terminal, or whatever stands in its place.
void make_interactive(SpawnRequest& request) {
  request.input_fd = STDIN_FILENO;
  request.output_fd = STDOUT_FILENO;
  request.error_fd = STDERR_FILENO;
  request.terminal_fd = TerminalLoan::is_possible() ? STDIN_FILENO : -1;
}

std::optional<std::size_t> find_rank(const std::vector<WorkerSpec>& workers, std::optional<int> rank) {
  for (std::size_t i = 0; i < workers.size(); ++i)
    if (workers[i].rank == rank) return i;
  return std::nullopt;
}

std::vector<SpawnRequest> spawn_requests(const Attempt& attempt, const std::vector<UniqueFd>& inputs,
                                         int cgroup_fd) {
  std::vector<SpawnRequest> requests;
  for (std::size_t i = 0; i < attempt.workers.size(); ++i) {
    const WorkerSpec& worker = attempt.workers[i];
    requests.push_back({.executable = worker.executable,
                        .argv = worker.argv,
                        .environment = worker.environment.lines(),
                        .input_fd = inputs[std::min(i, inputs.size() - 1)].get(),
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

bool wants_terminal(int stop) { return stop == SIGTTIN || stop == SIGTTOU; }

// After SIGUSR1 or SIGUSR2 the rank lived on, so it has a handler: a later death by the same signal is not from us.
bool has_handled(int signal, Clock::duration lived_on) {
  return (signal == SIGUSR1 || signal == SIGUSR2) && lived_on > kHandled;
}

// While bash starts a program, it blocks SIGTERM instead, and drops it afterwards.
bool waits_for_program(pid_t shell) {
  if (is_interactive_shell(shell) && !catches(shell, SIGTERM)) return true;
  return (catches(shell, SIGTERM) || ignores(shell, SIGTERM)) && !foreground_of(shell).empty();
}

}  // namespace

ProcessGroup::ProcessGroup(EventLoop& loop, EventQueue& events, ProcessGroupOptions options)
    : loop_(loop),
      events_(events),
      options_(std::move(options)),
      input_(!options_.may_start_again && !options_.interactive),
      records_(static_cast<std::size_t>(options_.ranks)),
      leaders_(static_cast<std::size_t>(options_.ranks)),
      look_at_left_(loop) {
  loop_.watch_readable(deaths_.fd(), [this] { look_for_deaths(); });
}

ProcessGroup::~ProcessGroup() {
  end();
  loop_.forget(deaths_.fd());
}

void ProcessGroup::start(const Attempt& attempt) {
  const std::vector<UniqueFd> inputs = input_.open_for(attempt.workers.size());
  may_have_processes_ = true;
  if (options_.use_cgroup) cgroup_ = RunCgroup::make();
  records_.assign(records_.size(), {});
  leaders_ = std::vector<Leader>(leaders_.size());
  const Moment started = Moment::now();
  std::vector<SpawnRequest> requests = spawn_requests(attempt, inputs, cgroup_ ? cgroup_->folder_fd() : -1);
  interactive_ = find_rank(attempt.workers, options_.interactive);
  if (interactive_) make_interactive(requests[*interactive_]);
  std::vector<SpawnResult> results = spawn_all(requests, &deaths_);
  if (cgroup_) cgroup_->post_guard();  // while the workers load their programs
  for (std::size_t i = 0; i < results.size(); ++i) {
    records_[i].started = started;
    if (results[i].error != 0) {
      events_.push(SpawnFailed{static_cast<int>(i), results[i].error});
      return;
    }
    records_[i].pid = results[i].pid;
    leaders_[i].pidfd = std::move(results[i].pidfd);
    leaders_[i].number = attempt.workers[i].rank;
  }
  lend_terminal();
}

void ProcessGroup::lend_terminal() {
  if (interactive_ && leaders_[*interactive_].pidfd) terminal_.lend(records_[*interactive_].pid);
}

void ProcessGroup::look_for_stop() {
  if (!interactive_) return;
  const UniqueFd& leader = leaders_[*interactive_].pidfd;
  const int stop = leader ? take_stop(leader.get()) : 0;
  const bool asks = wants_terminal(stop);
  if (stop != SIGTSTP && !asks) return;
  if (asks) lend_terminal();
  if (asks && terminal_.is_lent()) return signal_group(static_cast<int>(*interactive_), SIGCONT);
  terminal_.take_back();
  ::kill(::getppid(), SIGTSTP);  // the front process, which tells us and then stops for the shell to see
}

void ProcessGroup::tell_who_wants_terminal() const {
  for (std::size_t rank = 0; rank < leaders_.size(); ++rank) {
    const Leader& leader = leaders_[rank];
    if (rank == interactive_ || !leader.pidfd || !wants_terminal(take_stop(leader.pidfd.get()))) continue;
    options_.say(fmt::format(
        "rank {0} has stopped and waits, because it, or a program that it started, uses the terminal; --interactive={0} gives it the terminal",
        leader.number));
  }
}

// Who pressed Ctrl-C meant the run: it ends as if fleetrun had got the signal.
void ProcessGroup::note_end_by_key(std::size_t rank, const ExitStatus& status) {
  if (rank != interactive_) return;
  terminal_.take_back();
  if (status.exit_code() == kSignalExitCode + SIGINT) events_.push(SignalReceived{SIGINT});
}

bool ProcessGroup::look_for_deaths() {
  const auto ranks = deaths_.take();
  std::vector<std::pair<std::size_t, ExitStatus>> ends;
  for (const std::size_t rank : ranks)
    if (const auto status = status_of_ended(rank)) ends.emplace_back(rank, *status);
  const bool any_asked = std::ranges::any_of(
      ends, [&](const auto& end) { return request_of(end.first, end.second).signal != 0; });
  const LeftByRank left = any_asked ? list_left_by_rank() : LeftByRank();
  for (const auto& [rank, status] : ends) on_exit(rank, status, left);
  return !ranks.empty();
}

// Ours, or the signal of somebody else that the leader died of.
LeftOfRanks::Request ProcessGroup::request_of(std::size_t rank, const ExitStatus& status) const {
  const Leader& leader = leaders_[rank];
  if (leader.asked != 0)
    return {.signal = leader.asked,
            .by_fleetrun = !leader.others_asked,
            .group_has_it = leader.group_asked,
            .handlers = leader.handlers,
            .asked = leader.below_asked,
            .filters = leader.filters};
  const int signal = status.exit_code() - kSignalExitCode;
  const bool ends = ends_a_run(signal) || std::ranges::count(options_.stop_signals, signal) > 0;
  return {.signal = ends ? signal : 0, .by_fleetrun = false};
}

void ProcessGroup::wait_for_left(TimePoint latest) const { launch::wait_for_left(latest, own_children()); }

void ProcessGroup::end(Clock::duration patience, const ReaderPatience& readers) {
  if (may_have_processes_) ask_left(patience, readers);
  end();
}

// A filter that is asked too early loses what it has not written yet.
void ProcessGroup::ask_left(Clock::duration patience, const ReaderPatience& readers) {
  terminal_.take_back();
  std::vector<pid_t> had_time = left_.deaf();
  PipeReaders filters;
  if (const std::vector<pid_t> there = filters.wait(own_children(), readers); !there.empty()) {
    std::vector<pid_t> but = had_time;
    but.insert(but.end(), there.begin(), there.end());
    for (const pid_t pid : ask_left_to_end(patience, own_children(), but)) had_time.push_back(pid);
    filters.wait(own_children(), readers);
  }
  ask_left_to_end(patience, own_children(), had_time);
}

void ProcessGroup::end() {
  if (!std::exchange(may_have_processes_, false)) return;
  terminal_.take_back();
  for (Leader& leader : leaders_) {
    deaths_.forget(leader.pidfd);
    leader.pidfd.reset();
  }
  held_.clear();
  look_at_left_.cancel();
  left_.forget();
  if (cgroup_) cgroup_->kill_all();
  for (int rank = 0; rank < std::ssize(records_); ++rank) signal_group(rank, SIGKILL);
  survivors_ = end_all_children(std::min<Clock::duration>(kSweepPatience, options_.kill_wait),
                                cgroup_ ? std::vector{cgroup_->guard()} : std::vector<pid_t>());
  cgroup_.reset();
}

// The leader stays a zombie until end(), so that its number still means its process group.
std::optional<ExitStatus> ProcessGroup::status_of_ended(std::size_t rank) const {
  const Leader& leader = leaders_[rank];
  if (!leader.pidfd) return std::nullopt;
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(leader.pidfd.get()), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    throw Error(ErrorKind::internal,
                fmt::format("looking how rank {} ended: {}", rank, describe_errno(errno)));
  return info.si_pid == 0 ? std::nullopt : std::optional(ExitStatus::from_siginfo(info));
}

// The leader has died of SIGTERM, or a SIGTERM is pending for it.
bool ProcessGroup::has_sigterm(std::size_t rank) const {
  const auto ended = status_of_ended(rank);
  return ended ? ended->exit_code() == kSignalExitCode + SIGTERM
               : leaders_[rank].pidfd && is_pending(records_[rank].pid, SIGTERM);
}

void ProcessGroup::on_exit(std::size_t rank, const ExitStatus& status, const LeftByRank& left) {
  Leader& leader = leaders_[rank];
  records_[rank].ended = Moment::now();
  records_[rank].ended_earlier = events_.lateness();
  if (status.how == ExitStatus::How::signaled)
    records_[rank].cpu_seconds = read_own_cpu_seconds(records_[rank].pid);
  deaths_.forget(leader.pidfd);
  leader.pidfd.reset();
  const bool asked = status.how == ExitStatus::How::signaled && status.value == leader.sent &&
                     !has_handled(leader.sent, records_[rank].ended.steady - leader.sent_at);
  if (!asked) note_end_by_key(rank, status);
  const bool leaves = leaves_processes(rank, request_of(rank, status), left);
  events_.push(WorkerExited{static_cast<int>(rank), status, asked ? leader.origin : "", leaves});
}

bool ProcessGroup::leaves_processes(std::size_t rank, const LeftOfRanks::Request& request,
                                    const LeftByRank& left) {
  if (request.signal == 0) return false;
  const bool first = left_.empty();
  if (!left_.add(static_cast<int>(rank), records_[rank].pid, request, left)) return false;
  if (first) look_at_left_.call_at(Clock::now() + kLookAtLeft, [this] { watch_left(); });
  return true;
}

// A look at many processes takes a while; most of the time is for other things.
void ProcessGroup::watch_left() {
  const TimePoint start = Clock::now();
  for (const int rank : left_.take_ended(list_left_by_rank(), start)) events_.push(LeftEnded{rank});
  const TimePoint end = Clock::now();
  if (left_.empty()) return;
  const Clock::duration pause = std::max<Clock::duration>(kLookAtLeft, 10 * (end - start));
  look_at_left_.call_at(end + pause, [this] { watch_left(); });
}

std::vector<pid_t> ProcessGroup::leaders() const {
  std::vector<pid_t> leaders;
  for (const WorkerRecord& record : records_) leaders.push_back(record.pid);
  return leaders;
}

// The leaders, and the guard of the cgroup.
std::vector<pid_t> ProcessGroup::own_children() const {
  std::vector<pid_t> children = leaders();
  if (cgroup_) children.push_back(cgroup_->guard());
  return children;
}

LeftByRank ProcessGroup::list_left_by_rank() const { return by_rank(list_left(own_children()), leaders()); }

bool ProcessGroup::would_end(int rank, int signal) const {
  const auto index = static_cast<std::size_t>(rank);
  const bool asks = signal == SIGUSR1 || signal == SIGUSR2;
  return asks && leaders_.at(index).pidfd && launch::would_end(records_[index].pid, signal);
}

bool ProcessGroup::send(int rank, int signal, const std::string& sender) {
  return deliver(leaders_.at(static_cast<std::size_t>(rank)), signal, sender + " sent with fleetrun signal");
}

bool ProcessGroup::deliver(Leader& leader, int signal, std::string origin) {
  if (!leader.pidfd || !send_signal(leader.pidfd, signal)) return false;
  leader.sent = signal;
  leader.sent_at = Clock::now();
  leader.origin = std::move(origin);
  return true;
}

// SIGINT goes to the whole group, as from a terminal: a shell waits for the program that it runs. A leader that has made nothing of
// SIGINT gets SIGTERM, for which it may have a handler. A stopped process gets its signal only when it goes on.
void ProcessGroup::act(const Terminate& action) {
  const auto rank = static_cast<std::size_t>(action.rank);
  Leader& leader = leaders_.at(rank);
  leader.group_asked = action.signal == SIGINT && leader.pidfd && handles(records_[rank].pid, SIGINT);
  note_handlers(rank, action.signal == SIGINT && !leader.group_asked ? SIGTERM : action.signal);
  leader.others_asked =
      !leader.group_asked && has_sigterm(rank);  // after the handlers were noted, which takes a while
  leader.asked = leader.others_asked ? SIGTERM : action.signal;
  const bool waits = leader.pidfd && !leader.group_asked && waits_for_program(records_[rank].pid);
  // What a trap of the shell starts does not belong to these.
  const std::vector<pid_t> below = waits ? list_process_tree(records_[rank].pid) : std::vector<pid_t>();
  if (leader.group_asked)
    interrupt_group(rank);
  else if (leader.pidfd)
    send_signal(leader.pidfd, action.signal == SIGINT ? SIGTERM : action.signal);
  ask_below(rank, below);
  signal_group(action.rank, SIGCONT);
  release();
}

// All of the leader's process group but the filters of the leader's own output, as of `exec > >(gzip > f)`. A shell goes on with its next command if
// the last program of a pipeline is not interrupted.
void ProcessGroup::interrupt_group(std::size_t rank) const {
  const pid_t leader = records_[rank].pid;
  const auto reads_leader = [leader](pid_t pid) { return reads_output_of(pid, leader); };
  if (std::ranges::none_of(leaders_[rank].filters, reads_leader))
    return signal_group(static_cast<int>(rank), SIGINT);
  for (const pid_t pid : list_process_tree(leader)) {
    const bool is_filter = leaders_[rank].filters.contains(pid) && reads_leader(pid);
    if (is_filter || ::getpgid(pid) != leader) continue;
    if (const UniqueFd pidfd = open_pidfd(pid)) send_signal(pidfd, SIGINT);
  }
}

// A shell that does not end at SIGTERM, because it is interactive or has a trap, waits for a program that knows nothing of the signal. So SIGTERM
// goes to those below that handle it, except to their children. If there are none, all get it. Other leaders that ignore it may be saving.
void ProcessGroup::ask_below(std::size_t rank, const std::vector<pid_t>& below) {
  const std::set<pid_t>& handlers = leaders_[rank].handlers;
  std::set<pid_t> covered, in_foreground;
  for (const pid_t pid : below) {
    const auto stat = read_process_stat(pid);
    if (pid == records_[rank].pid || !stat || ::getsid(pid) != ::getsid(0)) continue;
    if (leaders_[rank].filters.contains(pid)) continue;
    const bool handles_it = handlers.contains(pid),
               is_covered = covered.contains(stat->parent) && !in_foreground.contains(pid);
    if (is_covered || handles_it) covered.insert(pid);
    if (is_covered || (!handles_it && !handlers.empty())) continue;
    if (handles_it)
      for (const pid_t child : foreground_of(pid)) in_foreground.insert(child);
    if (const UniqueFd pidfd = open_pidfd(pid); pidfd && send_signal(pidfd, SIGTERM))
      leaders_[rank].below_asked.insert(pid);
  }
}

// Once the signal has come, who had a handler for it may have another one, or none.
void ProcessGroup::note_handlers(std::size_t rank, int signal) {
  const pid_t pid_of_leader = records_[rank].pid;
  Leader& leader = leaders_[rank];
  std::vector<pid_t> below = list_process_tree(pid_of_leader);
  std::erase(below, pid_of_leader);
  leader.handlers.clear();
  for (const pid_t pid : below)
    if (handles(pid, signal)) leader.handlers.insert(pid);
  std::set<pid_t> printers = leader.handlers;
  printers.insert(pid_of_leader);
  leader.filters = filters_among(below, printers);
  for (const pid_t pid : leader.filters) leader.handlers.erase(pid);
}

void ProcessGroup::act(const TerminateGroup& action) {
  Leader& leader = leaders_.at(static_cast<std::size_t>(action.rank));
  leader.asked = SIGTERM;
  leader.others_asked = false;
  leader.group_asked = true;
  note_handlers(static_cast<std::size_t>(action.rank), SIGTERM);
  signal_group(action.rank, SIGTERM);
  signal_group(action.rank, SIGCONT);
  release();
}

void ProcessGroup::act(const Kill& action) {
  Leader& leader = leaders_.at(static_cast<std::size_t>(action.rank));
  leader.asked = 0;
  if (leader.pidfd) send_signal(leader.pidfd, SIGKILL);
  signal_group(action.rank, SIGKILL);
}

bool ProcessGroup::pass_on(int rank, int signal) {
  const auto index = static_cast<std::size_t>(rank);
  const UniqueFd& pidfd = leaders_.at(index).pidfd;
  if (!pidfd) return true;
  if (would_end(rank, signal)) return false;
  deliver(leaders_[index], signal, "fleetrun passed on");
  return true;
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
  if (interactive_ == static_cast<std::size_t>(action.rank)) lend_terminal();
  signal_group(action.rank, SIGCONT);
  release();
}

void ProcessGroup::signal_group(int rank, int signal) const {
  const pid_t leader = records_.at(static_cast<std::size_t>(rank)).pid;
  if (leader > 0) ::killpg(leader, signal);  // unreaped: see on_exit
}

}  // namespace fleetrun::launch
