// Ranks as forked processes, each with what a worker has: a store and a communicator. For tests whose own process has no
// thread, and no device, when it makes one.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/run/run_key.h"
#include "comm/make_communicator.h"
#include "support/store_thread.h"

namespace fleetrun::testing {

// The ranks begin before this process has any thread; they learn the store's port by a pipe.
class ProcessWorld {
 public:
  using Body = std::function<void(comm::World&)>;

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
    using namespace std::chrono_literals;
    try {
      std::uint16_t port = 0;
      if (::read(port_pipe_[0], &port, sizeof(port)) != sizeof(port)) return 3;
      comm::World world = comm::join_world({.rank = rank,
                                            .world_size = size_,
                                            .run_id = "run",
                                            .store = {"127.0.0.1", port},
                                            .key_fd = key_fd_.get(),
                                            .comm_backend = backend_},
                                           20s);
      body(world);
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
  std::optional<StoreThread> store_;
};

}  // namespace fleetrun::testing
