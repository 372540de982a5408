// Shared memory between processes, as workers have it.
#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/run_key.h"
#include "comm/communicator_cases.h"
#include "comm/make_communicator.h"
#include "support/store_thread.h"

namespace fleetrun::comm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Body = std::function<void(Communicator&)>;

// Ranks as forked processes, from before this one has any thread; they learn the store's port by a pipe.
class ProcessWorld {
 public:
  ProcessWorld(int size, const Body& body, CommBackend backend = CommBackend::shared_memory)
      : size_(size), backend_(backend) {
    if (::pipe(port_pipe_) != 0) throw std::runtime_error("no pipe");
    for (int rank = 0; rank < size; ++rank) {
      const pid_t pid = ::fork();
      if (pid == 0) ::_exit(live(rank, body));
      pids_.push_back(pid);
    }
    store_.emplace(launch::StoreServerOptions{.key = key_, .run_id = "run", .world_size = size});
    for (int rank = 0; rank < size; ++rank) {
      const std::uint16_t port = store_->endpoint().port;
      if (::write(port_pipe_[1], &port, sizeof(port)) != sizeof(port)) throw std::runtime_error("no port");
    }
  }
  ~ProcessWorld() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
    ::close(port_pipe_[0]);
    ::close(port_pipe_[1]);
  }

  // Exit code, or 128 and the signal.
  int wait(int rank) {
    pid_t& pid = pids_[static_cast<std::size_t>(rank)];
    int status = 0;
    ::waitpid(pid, &status, 0);
    pids_.erase(pids_.begin() + rank);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  int live(int rank, const Body& body) const {
    try {
      std::uint16_t port = 0;
      if (::read(port_pipe_[0], &port, sizeof(port)) != sizeof(port)) return 3;
      const World world = join_world({.rank = rank,
                                      .world_size = size_,
                                      .run_id = "run",
                                      .store = {"127.0.0.1", port},
                                      .key_fd = key_fd_.get(),
                                      .comm_backend = backend_},
                                     20s);
      body(*world.communicator);
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      return 1;
    }
  }

  const int size_;
  const CommBackend backend_;
  const RunKey key_ = make_run_key();
  const UniqueFd key_fd_ = put_run_key(key_);
  int port_pipe_[2] = {-1, -1};
  std::vector<pid_t> pids_;
  std::optional<testing::StoreThread> store_;
};

TEST_CASE("shared memory between processes: every collective, dtype and size") {
  for (const int size : {2, 3}) {
    CAPTURE(size);
    ProcessWorld world(size, testing::run_all_cases);
    for (int rank = size - 1; rank >= 0; --rank) CHECK(world.wait(rank) == 0);
  }
}

TEST_CASE("shared memory between processes: a rank that is killed is named within a second") {
  constexpr int kFloats = 500'000;
  const auto in_training = [](Communicator& comm) {
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
        2, [](Communicator& comm) { comm.barrier(); }, backend);
    const int wanted = backend == CommBackend::automatic ? 0 : 1;
    CHECK(world.wait(1) == wanted);
    CHECK(world.wait(0) == wanted);
  }
}

}  // namespace
}  // namespace fleetrun::comm
