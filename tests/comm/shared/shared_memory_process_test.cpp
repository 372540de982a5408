// Shared memory between processes, as workers have it.
#include <doctest/doctest.h>

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>

#include "base/error/error.h"
#include "comm/communicator_cases.h"
#include "support/process_world.h"

namespace fleetrun::comm::shared_memory_process_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::ProcessWorld;

constexpr int kNoNamespace = 77;

TEST_CASE("shared memory between processes: every collective, dtype and size") {
  for (const int size : {2, 3}) {
    CAPTURE(size);
    ProcessWorld world(size, [](World& ranks) { testing::run_all_cases(*ranks.communicator); });
    for (int rank = size - 1; rank >= 0; --rank) CHECK(world.wait(rank) == 0);
  }
}

TEST_CASE("shared memory between processes: a rank that is killed is named within a second") {
  constexpr int kFloats = 500'000;
  const auto in_training = [](World& world) {
    Communicator& comm = *world.communicator;
    const auto memory = comm.allocate(kFloats * sizeof(float));
    const auto all_reduce = [&] { comm.all_reduce({memory->data(), kFloats, DType::f32}, ReduceOp::sum); };
    for (int i = 0; i < 20; ++i) all_reduce();
    if (comm.rank() == 1) ::kill(::getpid(), SIGKILL);
    const auto start = Clock::now();
    try {
      all_reduce();
    } catch (const Error& error) {
      const std::string wanted = "rank " + std::to_string(comm.rank()) +
                                 ": collective 21, all_reduce of 500000 f32 (sum): waited for rank 1 (";
      if (error.message().rfind(wanted, 0) != 0) throw;
      if (Clock::now() - start > 1s) throw std::runtime_error("it took too long");
      return;
    }
    throw std::runtime_error("nothing was thrown");
  };
  ProcessWorld world(3, in_training);
  CHECK(world.wait(2) == 0);
  CHECK(world.wait(1) == 128 + SIGKILL);
  CHECK(world.wait(0) == 0);
}

// The exit code of `body` as process 1 of a process namespace whose /proc is still that of ours.
template <typename Body>
int exit_code_in_namespace(const Body& body) {
  const auto run_in_child = [](const auto& work) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  };
  return run_in_child([&] { return ::unshare(CLONE_NEWPID) == 0 ? run_in_child(body) : kNoNamespace; });
}

TEST_CASE("ranks share memory in a process namespace that has the /proc of another one") {
  const int code = exit_code_in_namespace([] {
    ProcessWorld world(2, [](World& ranks) { testing::run_all_cases(*ranks.communicator); });
    const int last = world.wait(1);
    return std::max(last, world.wait(0));
  });
  if (code == kNoNamespace) {
    MESSAGE("skipped: no process namespace can be made here");
    return;
  }
  CHECK(code == 0);
}

// What this process and its children inherit until the end of the test.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("processes that cannot share memory use Gloo, unless shared memory was asked for") {
  const FileSizeLimit limit(64 << 10);
  for (const CommBackend backend : {CommBackend::automatic, CommBackend::shared_memory}) {
    ProcessWorld world(
        2, [](World& ranks) { ranks.communicator->barrier(); }, backend);
    const int wanted = backend == CommBackend::automatic ? 0 : 1;
    CHECK(world.wait(1) == wanted);
    CHECK(world.wait(0) == wanted);
  }
}

}  // namespace
}  // namespace fleetrun::comm::shared_memory_process_test
