#include "base/system/crash_trace.h"

#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

namespace fleetrun {
namespace {

constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kMostFrames = 64;

// A handler can be given nothing, so what it needs stands here.
std::array<char, 64> who_text{};
std::array<char, 64 * 1024> handler_stack{};  // the usual one may be what overflowed

void write_text(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

// The disposition is the default again: raised once more, the signal ends us when the handler returns.
void tell_where(int number) {
  write_text(who_text.data());
  write_text(kCrashHeadline);
  write_text(::sigabbrev_np(number));
  write_text("; backtrace:\n");
  std::array<void*, kMostFrames> frames{};
  ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), kMostFrames), STDERR_FILENO);
  ::raise(number);
}

}  // namespace

void install_crash_trace(const std::string& who) {
  std::copy_n(who.begin(), std::min(who.size(), who_text.size() - 1), who_text.begin());
  void* one_frame = nullptr;
  ::backtrace(&one_frame, 1);  // loads a library the first time, which a handler must not do
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = tell_where;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_ONSTACK);
  for (const int number : kCrashes) ::sigaction(number, &action, nullptr);
}

}  // namespace fleetrun
