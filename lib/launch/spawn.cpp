#include "launch/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

namespace fleetrun::launch {
namespace {

constexpr std::size_t kChildStack = 64 * 1024;  // bytes; execve with its arguments needs a tenth of it

std::vector<char*> as_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// What the child between clone and exec works with. It shares our memory, or where it enters a cgroup has a copy, and
// we wait for it; it may make system calls only.
struct ChildPlan {
  const SpawnRequest& request;
  std::vector<char*> argv, environment;
  pid_t parent;
  int* error;  // in memory that is shared in either case
};

// The parent may have gone before the request was in force: then nobody would ever end us.
bool die_with_parent(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  errno = ESRCH;
  return ::getppid() == parent;
}

bool reset_signals() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0) continue;  // numbers that libc keeps for itself
    if (number == SIGHUP && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(number, &action, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  return ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0;
}

bool place_descriptors(const SpawnRequest& request) {
  if (::dup2(request.input_fd, STDIN_FILENO) < 0 || ::dup2(request.output_fd, STDOUT_FILENO) < 0 ||
      ::dup2(request.output_fd, STDERR_FILENO) < 0)
    return false;
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return false;
  for (const int fd : request.inherited_fds)
    if (::fcntl(fd, F_SETFD, 0) != 0) return false;
  return true;
}

bool bind_to_cpus(const SpawnRequest& request) {
  if (request.cpus.empty()) return true;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : request.cpus) CPU_SET(cpu, &mask);
  return ::sched_setaffinity(0, sizeof mask, &mask) == 0;
}

int run_child(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  if (::setpgid(0, 0) == 0 && die_with_parent(plan.parent) && bind_to_cpus(plan.request) && reset_signals() &&
      place_descriptors(plan.request))
    ::execve(plan.request.executable.c_str(), plan.argv.data(), plan.environment.data());
  *plan.error = errno;
  ::_exit(127);
}

// While the child runs in our memory no signal may call a handler there.
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

class ChildStack {
 public:
  ChildStack()
      : memory_(::mmap(nullptr, kChildStack, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_STACK,
                       -1, 0)) {}
  ~ChildStack() {
    if (made()) ::munmap(memory_, kChildStack);
  }
  ChildStack(const ChildStack&) = delete;
  ChildStack& operator=(const ChildStack&) = delete;

  bool made() const { return memory_ != MAP_FAILED; }
  void* top() const { return static_cast<char*>(memory_) + kChildStack; }
  int* bottom() const { return static_cast<int*>(memory_); }  // never reached as stack

 private:
  void* memory_;
};

#if defined(__x86_64__)
// libc 2.36 has no function for clone3. The child starts on the stack in the arguments and calls `run`, which does
// not return; it gets both in registers, since nothing of our frame is on that stack. The result is that of the
// kernel: a negative errno.
long clone3_and_run(clone_args& arguments, int (*run)(void*), void* argument) {
  long result = SYS_clone3;
  register auto run_register asm("r8") = run;
  register void* argument_register asm("r9") = argument;
  asm volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq %%r9, %%rdi\n\t"
      "callq *%%r8\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof arguments), "r"(run_register), "r"(argument_register)
      : "rcx", "r11", "memory");
  return result;
}
constexpr std::uint64_t kSharesMemory = CLONE_VM;
#else
// The child gets a copy of our memory, on which it can go on with our stack.
long clone3_and_run(clone_args& arguments, int (*run)(void*), void* argument) {
  arguments.stack = arguments.stack_size = 0;
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) run(argument);
  return pid;
}
constexpr std::uint64_t kSharesMemory = 0;
#endif

// A process that is put into a cgroup later makes the kernel wait for all processors, 10 ms and more.
pid_t clone_into_cgroup(ChildPlan& plan, const ChildStack& stack, int cgroup, int& pidfd) {
  clone_args arguments{};
  arguments.flags = kSharesMemory | CLONE_VFORK | CLONE_PIDFD | CLONE_INTO_CGROUP;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  arguments.stack = reinterpret_cast<std::uintptr_t>(stack.top()) - kChildStack;
  arguments.stack_size = kChildStack;
  arguments.cgroup = static_cast<std::uint64_t>(cgroup);
  return static_cast<pid_t>(clone3_and_run(arguments, run_child, &plan));
}

}  // namespace

SpawnResult spawn(const SpawnRequest& request) {
  const ChildStack stack;
  if (!stack.made()) return {.error = errno};
  ChildPlan plan = {.request = request,
                    .argv = as_pointers(request.argv),
                    .environment = as_pointers(request.environment),
                    .parent = ::getpid(),
                    .error = stack.bottom()};
  SpawnResult result;
  int pidfd = -1;
  {
    const BlockedSignals blocked;
    if (request.cgroup_fd >= 0) result.pid = clone_into_cgroup(plan, stack, request.cgroup_fd, pidfd);
    if (result.pid < 0)
      result.pid =
          ::clone(run_child, stack.top(), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
  }
  if (result.pid < 0) {
    result.error = errno;
    return result;
  }
  result.pidfd.reset(pidfd);
  if (*plan.error != 0) {
    ::waitpid(result.pid, nullptr, 0);
    return {.error = *plan.error};
  }
  return result;
}

}  // namespace fleetrun::launch
