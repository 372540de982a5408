// The threads of a block as coroutines.
#undef _FORTIFY_SOURCE  // its longjmp believes in one stack

#include <ucontext.h>

#include <array>
#include <csetjmp>
#include <vector>

#include "cuda/plugin/grid.cuh"

#undef __syncthreads
#undef blockIdx
#undef threadIdx
#undef gridDim
#undef blockDim

namespace fleetrun::cuda::on_host {

Place block, thread, blocks;

namespace {

constexpr std::size_t kStackBytes = 64 << 10U;

struct Coroutine {
  std::vector<char> stack = std::vector<char>(kStackBytes);
  ucontext_t beginning{};
  std::jmp_buf place{};
  bool begun = false, ended = false;
};

std::array<Coroutine, kThreads> coroutines;
std::jmp_buf caller;
const std::function<void()>* body = nullptr;

void live() {
  (*body)();
  coroutines[thread.x].ended = true;
  ::_longjmp(caller, 1);
}

// Until the thread waits or ends. Jumps make no system call, as switching contexts would.
void go_on(Coroutine& coroutine) {
  if (::_setjmp(caller) != 0) return;
  if (coroutine.begun) ::_longjmp(coroutine.place, 1);
  coroutine.begun = true;
  ::setcontext(&coroutine.beginning);
}

}  // namespace

void wait_for_block() {
  if (::_setjmp(coroutines[thread.x].place) == 0) ::_longjmp(caller, 1);
}

void run_together(const std::function<void()>& thread_body) {
  body = &thread_body;
  for (Coroutine& each : coroutines) {
    ::getcontext(&each.beginning);
    each.beginning.uc_stack.ss_sp = each.stack.data();
    each.beginning.uc_stack.ss_size = each.stack.size();
    each.begun = each.ended = false;
    ::makecontext(&each.beginning, live, 0);
  }
  for (std::size_t ended = 0; ended < kThreads;) {
    ended = 0;
    for (unsigned i = 0; i < kThreads; ++i) {
      thread.x = i;
      if (!coroutines[i].ended) go_on(coroutines[i]);
      if (coroutines[i].ended) ++ended;
    }
    if (ended > 0 && ended < kThreads) refuse("threads of a block wait for others that have ended");
  }
}

}  // namespace fleetrun::cuda::on_host
