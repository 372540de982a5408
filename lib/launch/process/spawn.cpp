#include "launch/process/spawn.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <new>
#include <optional>
#include <utility>

#include "launch/process/descriptors.h"
#include "launch/process/pidfd.h"
#include "launch/process/raw_calls.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kChildStack = 64 * 1024;  // bytes; execve with its arguments needs a tenth of it
constexpr long kSignalSetSize = 8;              // bytes; of the kernel's, as in the next two
constexpr std::array<std::uint64_t, 4> kDefaultAction{};
constexpr std::uint64_t kNoSignals = 0;

// What parent and child tell each other, in memory that they share.
struct ChildNote {
  int error = 0;                 // errno of what went wrong
  std::atomic<int> watched = 0;  // 1: the parent would notice our death, so the program may run
};
static_assert(std::atomic<int>::is_always_lock_free &&
              sizeof(std::atomic<int>) == sizeof(int));  // for futex(2)

// What a child works with between clone and exec. Its brothers do the same beside it, all in our memory (or in copies
// of it), so that it makes system calls only, and keeps nothing but numbers and these pointers.
struct Child {
  const char* executable = nullptr;
  std::vector<char*> argv, environment;
  int input_fd = 0, output_fd = 1, error_fd = 1;
  const int *inherited = nullptr, *inherited_end = nullptr;
  std::optional<cpu_set_t> cpus;                         // that it is bound to
  const int *signals = nullptr, *signals_end = nullptr;  // with dispositions to reset
  pid_t parent = -1;
  int terminal_fd = -1;
  ChildNote* note = nullptr;
};

// The parent may have gone before the request was in force: then nobody would ever end us.
long die_with_parent(const Child& child) {
  const long result = system_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  if (result < 0) return result;
  return system_call(SYS_getppid) == child.parent ? 0 : -ESRCH;
}

long bind_to_cpus(const Child& child) {
  return child.cpus ? system_call(SYS_sched_setaffinity, 0, sizeof(cpu_set_t), word(&*child.cpus)) : 0;
}

long reset_signals(const Child& child) {
  for (const int* number = child.signals; number != child.signals_end; ++number)
    system_call(SYS_rt_sigaction, *number, word(kDefaultAction.data()), 0, kSignalSetSize);
  return system_call(SYS_rt_sigprocmask, SIG_SETMASK, word(&kNoSignals), 0, kSignalSetSize);
}

// Before the program can read from the terminal. While all signals are blocked, a process in the background may do this.
void take_terminal(const Child& child) {
  if (child.terminal_fd < 0) return;
  const auto group = static_cast<int>(system_call(SYS_getpid));
  system_call(SYS_ioctl, child.terminal_fd, TIOCSPGRP, word(&group));
}

long place(int from, int to) { return from == to ? 0 : system_call(SYS_dup3, from, to); }

long place_descriptors(const Child& child) {
  long result = place(child.input_fd, STDIN_FILENO);
  if (result >= 0) result = place(child.output_fd, STDOUT_FILENO);
  if (result >= 0) result = place(child.error_fd, STDERR_FILENO);
  for (const int* fd = child.inherited; result >= 0 && fd != child.inherited_end; ++fd)
    result = system_call(SYS_fcntl, *fd, F_SETFD, 0);
  return result;
}

void wait_until_watched(ChildNote& note) {
  while (note.watched.load(std::memory_order_acquire) == 0)
    system_call(SYS_futex, word(&note.watched), FUTEX_WAIT, 0);
}

void let_run(ChildNote& note) {
  note.watched.store(1, std::memory_order_release);
  ::syscall(SYS_futex, &note.watched, FUTEX_WAKE, INT_MAX);
}

int run_child(void* argument) {
  const Child& child = *static_cast<Child*>(argument);
  long result = system_call(SYS_setpgid);
  if (result >= 0) result = die_with_parent(child);
  if (result >= 0) result = bind_to_cpus(child);
  if (result >= 0) take_terminal(child);
  if (result >= 0) result = reset_signals(child);
  if (result >= 0) result = place_descriptors(child);
  if (result >= 0) wait_until_watched(*child.note);
  if (result >= 0)
    result = system_call(SYS_execve, word(child.executable), word(child.argv.data()),
                         word(child.environment.data()));
  child.note->error = static_cast<int>(-result);
  system_call(SYS_exit_group, 127);
  return 127;
}

// While children run in our memory no signal may call a handler there.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

// A stack for each child, and below it, never reached as stack, a place for its note.
class ChildMemory {
 public:
  explicit ChildMemory(std::size_t children)
      : size_(children * kChildStack),
        memory_(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    for (std::size_t i = 0; made() && i < children; ++i) new (stack(i)) ChildNote;
  }
  ~ChildMemory() {
    if (made()) ::munmap(memory_, size_);
  }
  ChildMemory(const ChildMemory&) = delete;
  ChildMemory& operator=(const ChildMemory&) = delete;

  bool made() const { return memory_ != MAP_FAILED; }
  char* stack(std::size_t child) const { return static_cast<char*>(memory_) + child * kChildStack; }
  ChildNote& note(std::size_t child) const {
    return *std::launder(reinterpret_cast<ChildNote*>(stack(child)));
  }

 private:
  std::size_t size_;
  void* memory_;
};

std::vector<SpawnResult> one_error(int error) {
  std::vector<SpawnResult> results(1);
  results.front().error = error;
  return results;
}

// A program that is executed has the default disposition for all but what is ignored.
std::vector<int> signals_to_reset() {
  std::vector<int> signals;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0) continue;  // numbers that libc keeps for itself
    const bool ignored_hangup = number == SIGHUP && action.sa_handler == SIG_IGN;
    if (action.sa_handler != SIG_DFL && !ignored_hangup) signals.push_back(number);
  }
  return signals;
}

std::vector<char*> as_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::optional<cpu_set_t> as_mask(const std::vector<int>& cpus) {
  if (cpus.empty()) return std::nullopt;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(cpu, &mask);
  return mask;
}

std::vector<Child> plan_children(const std::vector<SpawnRequest>& requests, const ChildMemory& memory,
                                 const std::vector<int>& signals) {
  std::vector<Child> children;
  children.reserve(requests.size());
  for (const SpawnRequest& request : requests)
    children.push_back({.executable = request.executable.c_str(),
                        .argv = as_pointers(request.argv),
                        .environment = as_pointers(request.environment),
                        .input_fd = request.input_fd,
                        .output_fd = request.output_fd,
                        .error_fd = request.error_fd < 0 ? request.output_fd : request.error_fd,
                        .inherited = request.inherited_fds.data(),
                        .inherited_end = request.inherited_fds.data() + request.inherited_fds.size(),
                        .cpus = as_mask(request.cpus),
                        .signals = signals.data(),
                        .signals_end = signals.data() + signals.size(),
                        .parent = ::getpid(),
                        .terminal_fd = request.terminal_fd,
                        .note = &memory.note(children.size())});
  return children;
}

// A process that is put into a cgroup later makes the kernel wait for all processors, 10 ms and more.
long clone_into_cgroup(Child& child, char* stack, int cgroup, int& pidfd) {
  clone_args arguments{};
  arguments.flags = kSharesMemory | CLONE_PIDFD | CLONE_INTO_CGROUP;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  arguments.stack = reinterpret_cast<std::uintptr_t>(stack);
  arguments.stack_size = kChildStack;
  arguments.cgroup = static_cast<std::uint64_t>(cgroup);
  return clone3_and_run(arguments, run_child, &child);
}

SpawnResult start(Child& child, char* stack, int cgroup) {
  SpawnResult result;
  int pidfd = -1;
  if (cgroup >= 0) result.pid = static_cast<pid_t>(clone_into_cgroup(child, stack, cgroup, pidfd));
  if (result.pid < 0) {
    const auto flags = static_cast<int>(kSharesMemory | CLONE_PIDFD | SIGCHLD);
    result.pid = ::clone(run_child, stack + kChildStack, flags, &child, &pidfd);
  }
  if (result.pid < 0) return {.error = errno};
  result.pidfd.reset(pidfd);
  return result;
}

// One that could not be watched never runs its program.
void watch(std::size_t index, DeathWatch* deaths, ChildNote& note, SpawnResult& result) {
  if (result.error != 0) return;
  if (deaths != nullptr) result.error = deaths->watch(result.pidfd, index);
  if (result.error == 0)
    let_run(note);
  else
    send_signal(result.pidfd, SIGKILL);
}

// Starts all up to one that cannot be cloned; returns when each has executed its program or ended.
std::vector<SpawnResult> start_all(const std::vector<SpawnRequest>& requests, std::vector<Child>& children,
                                   const ChildMemory& memory, DeathWatch* deaths) {
  int ends[2] = {-1, -1};  // closed for a child when it executes its program
  if (::pipe2(ends, O_CLOEXEC) != 0) return one_error(errno);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  close_on_exec_from(STDERR_FILENO + 1);  // ours are; not those that our parent left open
  const BlockedSignals blocked;
  std::vector<SpawnResult> results;
  for (std::size_t i = 0; i < children.size() && (i == 0 || results.back().error == 0); ++i) {
    results.push_back(start(children[i], memory.stack(i), requests[i].cgroup_fd));
    watch(i, deaths, memory.note(i), results.back());
  }
  write_end.reset();
  char nothing = 0;
  while (::read(read_end.get(), &nothing, 1) < 0 && errno == EINTR) {
  }
  return results;
}

void end_child(const SpawnResult& result) {
  if (result.pid < 0) return;
  send_signal(result.pidfd, SIGKILL);
  ::waitpid(result.pid, nullptr, 0);
}

}  // namespace

std::vector<SpawnResult> spawn_all(const std::vector<SpawnRequest>& requests, DeathWatch* deaths) {
  const ChildMemory memory(requests.size());
  if (!memory.made()) return one_error(errno);
  const std::vector<int> signals = signals_to_reset();
  std::vector<Child> children = plan_children(requests, memory, signals);
  std::vector<SpawnResult> results = start_all(requests, children, memory, deaths);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].error == 0) results[i].error = memory.note(i).error;
    if (results[i].error == 0) continue;
    std::for_each(results.begin() + static_cast<std::ptrdiff_t>(i), results.end(), end_child);
    results[i] = {.error = results[i].error};
    results.resize(i + 1);
  }
  return results;
}

SpawnResult spawn(const SpawnRequest& request) { return std::move(spawn_all({request}).front()); }

}  // namespace fleetrun::launch
