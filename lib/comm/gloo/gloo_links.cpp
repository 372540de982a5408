#include "comm/gloo/gloo_links.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kPiece =
    128 << 10;  // bytes of one call: they stay in the core's cache until they are summed
// Awake, a rank answers within some microseconds; from sleep it takes some tens. Others may have its core meanwhile.
constexpr std::chrono::microseconds kAwakeTime{50};
constexpr std::chrono::seconds kStandstill{
    2};                                  // this process was stopped, as by Ctrl-Z: the time does not count
constexpr milliseconds kLookEvery{200};  // well under the time after which a silent peer is lost

// The slices of a buffer as they travel: from one to that before it, and so on round the ring.
class Walk {
 public:
  Walk(BufferView buffer, int slices, int first, int turns)
      : buffer_(buffer),
        slices_(static_cast<std::size_t>(slices)),
        slice_((first + slices) % slices),
        turns_(turns) {
    skip_empty();
  }

  bool at_end() const { return turns_ == 0; }
  int turns_left() const { return turns_; }
  std::byte* data() const { return buffer_.as<std::byte>() + start_of(slice_) + done_; }
  std::size_t left_of_slice() const { return start_of(slice_ + 1) - start_of(slice_) - done_; }
  void advance(std::size_t bytes) {
    done_ += bytes;
    skip_empty();
  }

 private:
  std::size_t start_of(int slice) const {
    return buffer_.count * static_cast<std::size_t>(slice) / slices_ * size_of(buffer_.dtype);
  }
  void skip_empty() {
    for (; turns_ > 0 && left_of_slice() == 0; --turns_, done_ = 0)
      slice_ = (slice_ + static_cast<int>(slices_) - 1) % static_cast<int>(slices_);
  }

  const BufferView buffer_;
  const std::size_t slices_;
  int slice_;
  int turns_;             // slices that are left, this one included
  std::size_t done_ = 0;  // bytes of this slice
};

// How much one call moved; nothing when it would have to wait.
std::size_t moved(ssize_t result, const char* what) {
  if (result >= 0) return static_cast<std::size_t>(result);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw std::runtime_error(fmt::format("{}: {}", what, describe_errno(errno)));
}

class Sender {
 public:
  Sender(int fd, int peer, Walk walk) : fd_(fd), peer_(peer), walk_(walk) {}

  int fd() const { return fd_; }
  int peer() const { return peer_; }
  bool done() const { return walk_.at_end(); }
  std::size_t sent() const { return sent_; }

  // At most `ready` bytes more.
  bool progress(std::size_t ready) {
    const std::size_t bytes = std::min({walk_.left_of_slice(), ready, kPiece});
    const std::size_t now = moved(::send(fd_, walk_.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL), "writing");
    sent_ += now;
    walk_.advance(now);
    return now > 0;
  }

 private:
  const int fd_;
  const int peer_;
  Walk walk_;
  std::size_t sent_ = 0;
};

class Receiver {
 public:
  // The last `copied` turns copy what they receive into the buffer. The turns before them add it.
  Receiver(int fd, int peer, Walk walk, int copied, std::size_t element, ReduceFunction reduce,
           std::vector<std::byte>& scratch)
      : fd_(fd),
        peer_(peer),
        walk_(walk),
        copied_(copied),
        element_(element),
        reduce_(reduce),
        scratch_(scratch) {}

  int fd() const { return fd_; }
  int peer() const { return peer_; }
  bool done() const { return walk_.at_end(); }
  std::size_t received() const { return received_; }  // and in the buffer

  bool progress() { return walk_.turns_left() > copied_ ? add() : copy(); }

 private:
  bool copy() {
    const std::size_t now = take(walk_.data(), walk_.left_of_slice());
    finish(now);
    return now > 0;
  }

  bool add() {
    const std::size_t now =
        take(scratch_.data() + pending_, std::min(walk_.left_of_slice(), kPiece) - pending_);
    pending_ += now;
    const std::size_t whole = pending_ / element_ * element_;
    if (whole > 0) {
      reduce_(walk_.data(), walk_.data(), scratch_.data(), whole / element_);
      pending_ -= whole;
      std::memmove(scratch_.data(), scratch_.data() + whole, pending_);
      finish(whole);
    }
    return now > 0;
  }

  std::size_t take(std::byte* to, std::size_t bytes) const {
    const ssize_t result = ::recv(fd_, to, bytes, MSG_DONTWAIT);
    if (result == 0) throw std::runtime_error("the connection is closed");
    return moved(result, "reading");
  }
  void finish(std::size_t bytes) {
    received_ += bytes;
    walk_.advance(bytes);
  }

  const int fd_;
  const int peer_;
  Walk walk_;
  const int copied_;
  const std::size_t element_;
  const ReduceFunction reduce_;
  std::vector<std::byte>& scratch_;
  std::size_t pending_ = 0;  // bytes at the start of the scratch
  std::size_t received_ = 0;
};

// One wait after another; each begins where something moved.
class Wait {
 public:
  explicit Wait(const LinkWaits& waits) : waits_(waits) {}

  void end() { waiting_ = false; }

  void go_on(std::array<pollfd, 2> events, LinkPeers peers) {
    const Clock::time_point now = Clock::now();
    if (!std::exchange(waiting_, true)) start_ = now;
    if (now - start_ < kAwakeTime) {
      ::sched_yield();
      return;
    }
    if (!std::exchange(slept_, true)) waits_.before_sleep();
    const Clock::time_point looked = Clock::now();
    if (::poll(events.data(), events.size(), static_cast<int>(kLookEvery.count())) != 0) return;
    if (const Clock::duration slept = Clock::now() - looked; slept > kStandstill) start_ += slept;
    const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - start_);
    waits_.look(peers, waited);
    if (waited >= waits_.deadline)
      throw std::runtime_error(fmt::format("nothing moved for {} ms", waited.count()));
  }

 private:
  const LinkWaits& waits_;
  bool waiting_ = false;
  bool slept_ = false;
  Clock::time_point start_;
};

// What arrives is sent on at once, so a rank may send its own slice and, of the following ones, what it has received.
void drive(Sender* sender, Receiver* receiver, std::size_t bytes_ahead, const LinkWaits& waits) {
  Wait wait(waits);
  while (true) {
    const bool receives = receiver != nullptr && !receiver->done();
    const bool sends = sender != nullptr && !sender->done();
    if (!receives && !sends) return;
    bool any = receives && receiver->progress();
    const std::size_t ready =
        sends ? bytes_ahead + (receiver != nullptr ? receiver->received() : 0) - sender->sent() : 0;
    if (ready > 0) any = sender->progress(ready) || any;
    if (any) {
      wait.end();
      continue;
    }
    wait.go_on({pollfd{receives ? receiver->fd() : -1, POLLIN, 0},
                pollfd{ready > 0 ? sender->fd() : -1, POLLOUT, 0}},
               {receives ? receiver->peer() : -1, ready > 0 ? sender->peer() : -1});
  }
}

}  // namespace

GlooLinks::GlooLinks(std::vector<UniqueFd> by_rank, int rank, LinkWaits waits)
    : fds_(std::move(by_rank)), rank_(rank), waits_(std::move(waits)), scratch_(kPiece) {
  const int on = 1;
  for (const UniqueFd& fd : fds_)
    if (fd) ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void GlooLinks::go_round(BufferView buffer, ReduceFunction sum, int turns) {
  const int next = (rank_ + 1) % size(), previous = (rank_ + size() - 1) % size();
  Sender sender(fd_of(next), next, Walk(buffer, size(), rank_, turns));
  Receiver receiver(fd_of(previous), previous, Walk(buffer, size(), rank_ - 1, turns), turns - (size() - 1),
                    size_of(buffer.dtype), sum, scratch_);
  const auto own = static_cast<std::size_t>(rank_), all = static_cast<std::size_t>(size());
  const std::size_t own_slice = buffer.count * (own + 1) / all - buffer.count * own / all;
  drive(&sender, &receiver, own_slice * size_of(buffer.dtype), waits_);
}

void GlooLinks::all_reduce(BufferView buffer, ReduceOp op) {
  go_round(buffer, reduce_function(buffer.dtype, op), 2 * (size() - 1));
}

// After size() - 1 turns, each rank r has the sum of slice r + 1. Then each rank sends that slice to the root.
void GlooLinks::reduce(BufferView buffer, ReduceOp op, int root) {
  go_round(buffer, reduce_function(buffer.dtype, op), size() - 1);
  if (rank_ != root) {
    Sender sender(fd_of(root), root, Walk(buffer, size(), rank_ + 1, 1));
    return drive(&sender, nullptr, buffer.bytes(), waits_);
  }
  for (int other = 0; other < size(); ++other) {
    if (other == root) continue;
    Receiver receiver(fd_of(other), other, Walk(buffer, size(), other + 1, 1), 1, size_of(buffer.dtype),
                      nullptr, scratch_);
    drive(nullptr, &receiver, 0, waits_);
  }
}

// After each round a rank knows that twice as many others have come as before.
void GlooLinks::barrier() {
  std::byte out{}, in{};
  for (int distance = 1; distance < size(); distance *= 2) {
    const int to = (rank_ + distance) % size(), from = (rank_ + size() - distance) % size();
    Sender sender(fd_of(to), to, Walk({&out, 1, DType::u8}, 1, 0, 1));
    Receiver receiver(fd_of(from), from, Walk({&in, 1, DType::u8}, 1, 0, 1), 1, 1, nullptr, scratch_);
    drive(&sender, &receiver, 1, waits_);
  }
}

}  // namespace fleetrun::comm
