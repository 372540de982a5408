// How ranks of one host wait for each other: each counts its meetings in its own segment and watches the
// counts of the others, first awake, then asleep on a futex. Also where a rank says what it is doing, and
// finds out who is not coming any more.
#pragma once
#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/collective/collective.h"
#include "comm/shared/shared_segment.h"

namespace fleetrun::comm {

// What a rank does in one collective; the pointers in it are of that rank alone.
struct Posting {
  std::uint64_t number = 0;
  Collective collective;
  SharedPlace source;  // of what the others read from this rank
};

// The first page of a communicator's part of a segment. Each rank writes its own; only `sleepers` is written by the others.
struct SharedControl {
  static constexpr std::size_t kCacheLine = 64;  // bytes: what is written by different ranks lies apart
  static constexpr std::int32_t kHere = -2;
  static constexpr std::int32_t kLeft = -1;

  alignas(kCacheLine) std::atomic<std::uint32_t> met{0};  // meetings that this rank has reached; the futex
  alignas(kCacheLine) std::atomic<std::uint32_t> sleepers{0};  // who wait for `met` on the futex
  alignas(kCacheLine) std::atomic<std::uint64_t> number{0};    // of the collective under way, or the last one
  std::atomic<std::int32_t> state{kHere};                      // from 0: failed, and waited for that rank
  // For two collectives in turn, so that a fast rank's next one does not overwrite what a slow rank reads.
  alignas(kCacheLine) std::array<Posting, 2> postings;
};

// Who did not come.
struct Absence {
  int rank = 0;       // the one to blame
  std::string words;  // "waited for rank 2 (its process has ended)"
};

class SharedMeeting {
 public:
  struct Place {
    SharedControl* control = nullptr;
    int process = -1;  // a pidfd; -1: our own place
    int name = 0;      // of the rank, in words
  };
  SharedMeeting(int rank, std::vector<Place> places, std::chrono::milliseconds deadline);

  // To be seen by the others from the next meeting on.
  void post(const Posting& posting);
  const Posting& posting(int rank, std::uint64_t number) const;

  // Returns when every rank has come as often as this one, or when it is sure or to be assumed that one will
  // not. Before it sleeps it calls `before_sleep`.
  std::optional<Absence> meet(const std::function<void()>& before_sleep);

  // Nobody waits for us any longer. `waited_for`: the rank that was the reason, or SharedControl::kLeft.
  void leave(std::int32_t waited_for);

 private:
  SharedControl& control(int rank) const { return *places_[static_cast<std::size_t>(rank)].control; }
  int name(int rank) const { return places_[static_cast<std::size_t>(rank)].name; }
  bool has_come(int rank) const;
  bool comes_while_awake(int rank) const;
  std::optional<Absence> sleep_until_it_comes(int rank);
  std::optional<Absence> find_gone();
  std::optional<Absence> find_failed() const;
  Absence describe_late() const;

  const int rank_;
  const std::vector<Place> places_;
  const std::chrono::milliseconds deadline_;
  const std::chrono::microseconds pause_time_;  // for which a waiting rank keeps its core
  std::vector<pollfd> processes_;               // by rank
  std::uint32_t meeting_ = 0;
};

}  // namespace fleetrun::comm
