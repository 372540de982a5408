// System calls without libc, for children that run beside us in our memory until they execute their program: libc
// would write an errno that all of us share. They are for x86-64; elsewhere children get a copy of our memory.
#pragma once
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace fleetrun::launch {

inline long word(const void* pointer) { return reinterpret_cast<long>(pointer); }

#if defined(__x86_64__)
constexpr std::uint64_t kSharesMemory = CLONE_VM;

// The kernel's answer; negative: -errno.
inline long system_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0) {
  long result = number;
  register long fourth_register asm("r10") = fourth;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(first), "S"(second), "d"(third), "r"(fourth_register)
               : "rcx", "r11", "memory");
  return result;
}

// libc 2.36 has no function for clone3. The child starts on the stack in the arguments and calls `run`, which does
// not return; it gets both in registers, since nothing of our frame is on that stack.
inline long clone3_and_run(clone_args& arguments, int (*run)(void*), void* argument) {
  long result = SYS_clone3;
  register auto run_register asm("r8") = run;
  register void* argument_register asm("r9") = argument;
  asm volatile(
      "syscall\n\ttestq %%rax, %%rax\n\tjnz 1f\n\txorl %%ebp, %%ebp\n\tmovq %%r9, %%rdi\n\tcallq *%%r8\n\thlt\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof arguments), "r"(run_register), "r"(argument_register)
      : "rcx", "r11", "memory");
  return result;
}
#else
constexpr std::uint64_t kSharesMemory = 0;

inline long system_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0) {
  const long result = ::syscall(number, first, second, third, fourth);
  return result < 0 ? -errno : result;
}

// With its copy of our memory the child goes on with our stack.
inline long clone3_and_run(clone_args& arguments, int (*run)(void*), void* argument) {
  arguments.stack = arguments.stack_size = 0;
  const long pid = system_call(SYS_clone3, word(&arguments), sizeof arguments);
  if (pid == 0) run(argument);
  return pid;
}
#endif

}  // namespace fleetrun::launch
