// Our own connections, besides those of Gloo. Sums run over them, on the thread that calls. With Gloo, its
// event loop and our progress thread would wake each other four times per message, which takes longer than a small sum
// and delays a large one. Private to the Gloo backend.
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

// The rank from which a rank awaits bytes, and the rank to which it sends; -1: none.
struct LinkPeers {
  int from = -1;
  int to = -1;
};

struct LinkWaits {
  std::chrono::milliseconds deadline;  // of each wait for another rank
  std::function<void()> before_sleep;
  // Called now and then during a wait, with the length of the wait so far. Throws when a peer is lost.
  std::function<void(LinkPeers, std::chrono::milliseconds)> look;
};

class GlooLinks {
 public:
  // `by_rank`: connected TCP sockets that nobody else reads or writes; empty for our own rank.
  GlooLinks(std::vector<UniqueFd> by_rank, int rank, LinkWaits waits);

  // Like the calls of Communicator, with bit-identical sums. They allocate nothing. They throw std::exception when a
  // connection breaks, a wait passes its deadline, or `look` throws.
  void all_reduce(BufferView buffer, ReduceOp op);
  void reduce(BufferView buffer, ReduceOp op, int root);
  void barrier();

 private:
  // Slices travel round the ring. The first half of the turns sums each slice; the second half passes the sums to all
  // ranks.
  void go_round(BufferView buffer, ReduceFunction sum, int turns);
  int size() const { return static_cast<int>(fds_.size()); }
  int fd_of(int rank) const { return fds_[static_cast<std::size_t>(rank)].get(); }

  const std::vector<UniqueFd> fds_;
  const int rank_;
  const LinkWaits waits_;
  std::vector<std::byte> scratch_;  // bytes on their way from the socket into a sum
};

}  // namespace fleetrun::comm
