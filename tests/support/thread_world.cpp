#include "support/thread_world.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "comm/collective/collective_communicator.h"
#include "comm/collective/reduce.h"

namespace fleetrun::comm {
namespace {

constexpr std::size_t kChunkBytes = 4096;  // reduced at a time, on the stack

struct Missing {
  std::vector<int> gone;
  std::vector<int> late;
};

// What the ranks share: how far each has come, and what each is doing.
class Meeting {
 public:
  Meeting(int size, ThreadWorldOptions options)
      : options_(std::move(options)), places_(static_cast<std::size_t>(size)) {}

  const ThreadWorldOptions& options() const { return options_; }

  // Waits until every rank has met as often as this one. Gives the ranks that are gone, or did not come in
  // time.
  Missing meet(int rank, const std::function<void()>& before_sleep) {
    std::unique_lock lock(mutex_);
    const std::uint64_t mine = ++place(rank).met;
    changed_.notify_all();
    if (!settled(mine)) {
      lock.unlock();
      before_sleep();
      lock.lock();
    }
    changed_.wait_for(lock, options_.deadline, [&] { return settled(mine); });
    return missing_at(mine);  // allocates only when somebody is missing
  }

  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    place(rank).left = true;
    changed_.notify_all();
  }

  // Written before a rank meets, read after: kept for two collectives in turn, so that a fast rank's next one
  // does not overwrite what a slow rank still reads.
  Collective& doing(int rank, std::uint64_t number) { return place(rank).doing[number % 2]; }

 private:
  struct Place {
    std::uint64_t met = 0;
    bool left = false;
    std::array<Collective, 2> doing;
  };
  // Everybody has come, or somebody never will.
  bool settled(std::uint64_t meeting) const {
    bool all_here = true;
    for (const Place& place : places_) {
      if (place.met >= meeting) continue;
      if (place.left) return true;
      all_here = false;
    }
    return all_here;
  }
  Missing missing_at(std::uint64_t meeting) const {
    Missing missing;
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      if (places_[rank].met >= meeting) continue;
      (places_[rank].left ? missing.gone : missing.late).push_back(static_cast<int>(rank));
    }
    return missing;
  }
  Place& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }

  const ThreadWorldOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Place> places_;
};

struct Slice {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::byte* at(BufferView buffer, std::size_t index) {
  return buffer.as<std::byte>() + index * size_of(buffer.dtype);
}

void copy(BufferView from, std::size_t from_index, BufferView to, std::size_t to_index, std::size_t count) {
  if (count > 0 && at(from, from_index) != at(to, to_index))
    std::memcpy(at(to, to_index), at(from, from_index), count * size_of(from.dtype));
}

class ThreadCommunicator : public CollectiveCommunicator {
 public:
  ThreadCommunicator(int rank, int size, std::shared_ptr<Meeting> meeting)
      : CollectiveCommunicator(rank, size), meeting_(std::move(meeting)) {}
  ~ThreadCommunicator() override { meeting_->leave(rank()); }

 private:
  void run(const Collective& collective, std::uint64_t number) override {
    if (meeting_->options().before_each) meeting_->options().before_each(rank(), number);
    number_ = number;
    meeting_->doing(rank(), number) = collective;
    meet();
    for (int other = 0; other < size(); ++other)
      if (!theirs(other).matches(collective))
        throw Error(ErrorKind::internal,
                    fmt::format("rank {}: collective {} is {}, but rank {} calls {}", rank(), number,
                                describe(collective), other, describe(theirs(other))));
    work(collective);
  }

  void work(const Collective& collective) {
    const BufferView buffer = collective.buffer;
    switch (collective.kind) {
      case Collective::Kind::all_reduce: {
        const Slice slice = slice_of(buffer.count, rank());
        reduce(slice, buffer, slice.begin, collective.op);
        meet();
        for (int other = 0; other < size(); ++other) {
          const Slice part = slice_of(buffer.count, other);
          copy(theirs(other).buffer, part.begin, buffer, part.begin, part.end - part.begin);
        }
        return meet();
      }
      case Collective::Kind::reduce:
        if (rank() == collective.root) reduce({0, buffer.count}, buffer, 0, collective.op);
        return meet();
      case Collective::Kind::broadcast:
        copy(theirs(collective.root).buffer, 0, buffer, 0, buffer.count);
        return meet();
      case Collective::Kind::reduce_scatter: {
        const std::size_t begin = collective.mine.count * static_cast<std::size_t>(rank());
        reduce({begin, begin + collective.mine.count}, collective.mine, 0, collective.op);
        return meet();
      }
      case Collective::Kind::all_gather:
        for (int other = 0; other < size(); ++other)
          copy(theirs(other).mine, 0, buffer, collective.mine.count * static_cast<std::size_t>(other),
               collective.mine.count);
        return meet();
      case Collective::Kind::barrier:
        return;
    }
  }

  // into[into_begin...] = op over everybody's buffer[range], in the order of ranks.
  void reduce(Slice range, BufferView into, std::size_t into_begin, ReduceOp op) {
    const ReduceFunction function = reduce_function(into.dtype, op);
    const std::size_t step = kChunkBytes / size_of(into.dtype);
    alignas(64) std::array<std::byte, kChunkBytes> sum;
    for (std::size_t i = range.begin; i < range.end; i += step) {
      const std::size_t count = std::min(step, range.end - i);
      std::memcpy(sum.data(), at(theirs(0).buffer, i), count * size_of(into.dtype));
      for (int other = 1; other < size(); ++other)
        function(sum.data(), sum.data(), at(theirs(other).buffer, i), count);
      std::memcpy(at(into, into_begin + i - range.begin), sum.data(), count * size_of(into.dtype));
    }
  }

  Slice slice_of(std::size_t count, int owner) const {
    const auto ranks = static_cast<std::size_t>(size());
    const auto index = static_cast<std::size_t>(owner);
    return {count * index / ranks, count * (index + 1) / ranks};
  }

  const Collective& theirs(int other) { return meeting_->doing(other, number_); }

  void meet() {
    const Missing missing = meeting_->meet(rank(), before_sleep_);
    if (missing.gone.empty() && missing.late.empty()) return;
    const auto deadline = std::chrono::duration<double>(meeting_->options().deadline).count();
    const std::string why =
        missing.gone.empty()
            ? fmt::format("rank {} did not come within {:g} s", fmt::join(missing.late, ", "), deadline)
            : fmt::format("rank {} is gone", fmt::join(missing.gone, ", "));
    throw Error(ErrorKind::temporary, fmt::format("rank {}: collective {}, {}: {}", rank(), number_,
                                                  describe(theirs(rank())), why));
  }

  const std::function<void()> before_sleep_ = [this] { tell_of_sleep(); };
  std::shared_ptr<Meeting> meeting_;  // shared by all ranks: the last one to go frees it
  std::uint64_t number_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_world(int size, ThreadWorldOptions options) {
  const auto meeting = std::make_shared<Meeting>(size, std::move(options));
  std::vector<std::unique_ptr<Communicator>> world;
  for (int rank = 0; rank < size; ++rank)
    world.push_back(std::make_unique<ThreadCommunicator>(rank, size, meeting));
  return world;
}

}  // namespace fleetrun::comm
