// Connections of our own beside those of Gloo: a sum goes over them on the thread that calls it. Gloo's event loop and our progress
// thread would wake each other four times for each message; that takes longer than a small sum, and holds up a large one.
// Inside of the Gloo backend.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/number/buffer_view.h"
#include "base/system/unique_fd.h"
#include "comm/collective/communicator.h"
#include "comm/collective/reduce.h"

namespace fleetrun::comm {

// Whose bytes a rank waits for, and who is to take its own; -1: nobody.
struct LinkPeers {
  int from = -1;
  int to = -1;
};

struct LinkWaits {
  std::chrono::milliseconds deadline;  // of each wait for another rank
  std::function<void()> before_sleep;
  // Now and then during a wait, with its length so far: throws when the peer is lost.
  std::function<void(LinkPeers, std::chrono::milliseconds)> look;
};

class GlooLinks {
 public:
  // `by_rank`: connected TCP sockets that nobody else reads or writes; none in our own place.
  GlooLinks(std::vector<UniqueFd> by_rank, int rank, LinkWaits waits);

  // As those of Communicator; a sum has the same bits in both. They allocate nothing, and throw std::exception when a
  // connection breaks, a wait passes its deadline, or `look` throws.
  void all_reduce(BufferView buffer, ReduceOp op);
  void reduce(BufferView buffer, ReduceOp op, int root);
  void barrier();

 private:
  // Slices travel round the ring. The first half of the turns sums each of them, the second half hands it to all.
  void go_round(BufferView buffer, ReduceFunction sum, int turns);
  int size() const { return static_cast<int>(fds_.size()); }
  int fd_of(int rank) const { return fds_[static_cast<std::size_t>(rank)].get(); }

  const std::vector<UniqueFd> fds_;
  const int rank_;
  const LinkWaits waits_;
  std::vector<std::byte> scratch_;  // bytes on their way from the socket into a sum
};

}  // namespace fleetrun::comm
