#include "comm/shared/shared_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "comm/collective/collective_communicator.h"
#include "comm/collective/reduce.h"
#include "comm/shared/shared_meeting.h"

namespace fleetrun::comm {
namespace {

constexpr std::size_t kBlockBytes = 4096;  // reduced at a time when there are more than two ranks
static_assert(sizeof(SharedControl) <= kStageStart);

struct Range {  // of elements
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
};

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// More than 200 lines: every collective of the backend, each with its steps between two meetings of the ranks.
class SharedMemoryCommunicator : public CollectiveCommunicator {
 public:
  SharedMemoryCommunicator(const SharedMemoryOptions& options, std::shared_ptr<SharedSegments> segments,
                           std::vector<SharedMeeting::Place> places)
      : CollectiveCommunicator(options.party.rank, options.party.size),
        segments_(std::move(segments)),
        places_(std::move(places)),
        meeting_(rank(), places_, options.collective_deadline),
        sources_(static_cast<std::size_t>(size())) {}

  ~SharedMemoryCommunicator() override { meeting_.leave(SharedControl::kLeft); }

  std::unique_ptr<Memory> allocate(std::size_t bytes) override { return segments_->allocate(bytes); }

 private:
  int name_of(int of_rank) const override { return name(of_rank); }

  void run(const Collective& collective, std::uint64_t number) override {
    if (failure_) throw Error(*failure_);
    collective_ = collective;
    number_ = number;
    try {
      run_checked();
    } catch (const Error& error) {
      meeting_.leave(SharedControl::kLeft);
      failure_ = error;
      throw;
    }
  }

  void run_checked() {
    const BufferView source = own_source();
    const SharedPlace place =
        source.count == 0 ? SharedPlace() : segments_->place_of(source.data, source.bytes());
    if (!place.shared()) stage({0, std::min(total(), chunk())});
    meeting_.post({number_, collective_, place});
    meet();
    check_postings();
    if (total() == 0) return;
    if (every_source(true)) return run_in_place();
    if (!every_source(false)) {  // some are shared, some are not: all go by the stage
      if (place.shared()) stage({0, std::min(total(), chunk())});
      meet();
    }
    run_staged();
  }

  // ---- what the others read from this rank

  BufferView own_source() const {
    switch (collective_.kind) {
      case Collective::Kind::all_reduce:
      case Collective::Kind::reduce:
      case Collective::Kind::reduce_scatter:
        return collective_.buffer;
      case Collective::Kind::all_gather:
        return collective_.mine;
      case Collective::Kind::broadcast:
        return collective_.root == rank() ? collective_.buffer : BufferView();
      case Collective::Kind::barrier:
        break;
    }
    return {};
  }

  // Whether those who are read from all have their data in shared memory, or all do not.
  bool every_source(bool shared) const {
    const bool broadcast = collective_.kind == Collective::Kind::broadcast;
    for (int other = 0; other < size(); ++other)
      if ((!broadcast || other == collective_.root) &&
          meeting_.posting(other, number_).source.shared() != shared)
        return false;
    return true;
  }

  // ---- in place: everything is where everybody sees it

  void run_in_place() {
    for (int other = 0; other < size(); ++other) {
      const SharedPlace& place = meeting_.posting(other, number_).source;
      if (!place.shared()) continue;  // of a broadcast
      sources_[index(other)] =
          other == rank() ? own_source().as<std::byte>() : segments_->at(name(other), place);
      if (collective_.kind == Collective::Kind::reduce_scatter)
        sources_[index(other)] += index(rank()) * collective_.mine.bytes();
    }
    if (collective_.kind == Collective::Kind::all_reduce || collective_.kind == Collective::Kind::reduce)
      reduce_own_slice();
    else
      take({0, total()});
    meet();  // until then others read from us and write to us
  }

  // This rank's slice of the sum goes to everybody, or to the root. Whole cache lines, so that no two ranks write to one.
  void reduce_own_slice() {
    const std::size_t bytes = collective_.buffer.bytes();
    const std::size_t lines = (bytes + SharedControl::kCacheLine - 1) / SharedControl::kCacheLine;
    const auto edge = [&](std::size_t part) {
      return std::min(bytes, lines * part / index(size()) * SharedControl::kCacheLine);
    };
    const Range slice = {edge(index(rank())), edge(index(rank()) + 1)};
    const std::size_t element = size_of(collective_.buffer.dtype);
    const Reduction functions = reduction(collective_.buffer.dtype, collective_.op);
    const bool to_all = collective_.kind == Collective::Kind::all_reduce;
    if (size() == 2 && to_all)
      return functions.both(sources_[0] + slice.begin, sources_[1] + slice.begin, slice.size() / element);
    alignas(64) std::array<std::byte, kBlockBytes> sum;
    for (std::size_t i = slice.begin / element; i < slice.end / element;) {
      const Stretch stretch = stretch_at(i);
      const std::size_t part = std::min({kBlockBytes / element, slice.end / element - i, stretch.elements});
      reduce_block(functions.into, sum.data(), i * element, part, stretch.first);
      for (int other = 0; other < size(); ++other)
        if (to_all || other == collective_.root)
          copy_bytes(sources_[index(other)] + i * element, sum.data(), part * element);
      i += part;
    }
  }

  // ---- staged: chunk by chunk through two halves of each rank's stage in turn, with one meeting for each
  // chunk: a rank that reaches the meeting of a chunk has read the chunk before.

  void run_staged() {
    for (Range range = {0, std::min(total(), chunk())};;) {
      for (int other = 0; other < size(); ++other) {
        sources_[index(other)] = half(other);
        if (collective_.kind == Collective::Kind::reduce_scatter)
          sources_[index(other)] += index(rank()) * chunk() * element_bytes();
      }
      take(range);
      ++chunks_;
      if (range.end == total()) return;
      range = {range.end, std::min(total(), range.end + chunk())};
      stage(range);
      meet();
    }
  }

  // To this rank's half of the moment.
  void stage(Range range) {
    const BufferView source = own_source();
    if (source.count == 0) return;
    const std::size_t element = element_bytes();
    std::byte* to = half(rank());
    const auto* from = source.as<std::byte>() + range.begin * element;
    if (collective_.kind != Collective::Kind::reduce_scatter)
      return copy_bytes(to, from, range.size() * element);
    for (int other = 0; other < size(); ++other)  // a part for each
      copy_bytes(to + index(other) * chunk() * element, from + index(other) * collective_.mine.bytes(),
                 range.size() * element);
  }

  std::byte* half(int owner) const {
    auto* front = reinterpret_cast<std::byte*>(places_[index(owner)].control);
    return front + kStageStart + chunks_ % 2 * kChunkBytes;
  }

  // Elements of each chunk.
  std::size_t chunk() const {
    if (collective_.kind != Collective::Kind::reduce_scatter) return kChunkBytes / element_bytes();
    const std::size_t part = kChunkBytes / index(size());
    return part / SharedControl::kCacheLine * SharedControl::kCacheLine / element_bytes();
  }

  // ---- both

  // Elements that pass from rank to rank: of all_gather and reduce_scatter, of one slice.
  std::size_t total() const {
    switch (collective_.kind) {
      case Collective::Kind::all_reduce:
      case Collective::Kind::reduce:
      case Collective::Kind::broadcast:
        return collective_.buffer.count;
      case Collective::Kind::reduce_scatter:
      case Collective::Kind::all_gather:
        return collective_.mine.count;
      case Collective::Kind::barrier:
        break;
    }
    return 0;
  }

  std::size_t element_bytes() const { return size_of(collective_.buffer.dtype); }

  // What this rank is to have of `range`, from the sources, where that range begins.
  void take(Range range) {
    const std::size_t start = range.begin * element_bytes();
    const std::size_t bytes = range.size() * element_bytes();
    switch (collective_.kind) {
      case Collective::Kind::reduce:
        if (rank() != collective_.root) return;
        [[fallthrough]];
      case Collective::Kind::all_reduce:
        return reduce_into(collective_.buffer.as<std::byte>() + start, range);
      case Collective::Kind::reduce_scatter:
        return reduce_into(collective_.mine.as<std::byte>() + start, range);
      case Collective::Kind::all_gather:
        for (int other = 0; other < size(); ++other)
          copy_bytes(collective_.buffer.as<std::byte>() + index(other) * collective_.mine.bytes() + start,
                     other == rank() ? collective_.mine.as<std::byte>() + start : sources_[index(other)],
                     bytes);
        return;
      case Collective::Kind::broadcast:
        if (rank() == collective_.root) return;
        return copy_bytes(collective_.buffer.as<std::byte>() + start, sources_[index(collective_.root)],
                          bytes);
      case Collective::Kind::barrier:
        return;
    }
  }

  // The sources begin with the range.
  void reduce_into(std::byte* out, Range range) {
    const ReduceFunction function = reduce_function(collective_.buffer.dtype, collective_.op);
    const std::size_t element = element_bytes();
    if (size() == 1) return copy_bytes(out, sources_[0], range.size() * element);
    if (size() == 2) return function(out, sources_[0], sources_[1], range.size());
    // By way of a block, for `out` may be one of the sources.
    alignas(64) std::array<std::byte, kBlockBytes> sum;
    for (std::size_t i = 0; i < range.size();) {
      const Stretch stretch = stretch_at(range.begin + i);
      const std::size_t part = std::min({kBlockBytes / element, range.size() - i, stretch.elements});
      reduce_block(function, sum.data(), i * element, part, stretch.first);
      copy_bytes(out + i * element, sum.data(), part * element);
      i += part;
    }
  }

  // Elements that are summed in one order: from rank `first` on, round all ranks.
  struct Stretch {
    std::size_t elements = 0;
    int first = 0;
  };

  // The order of the ring in the Gloo backend, which cuts a buffer into one slice per rank and sums slice r from rank r on: a training has
  // the same bits whether its ranks share a host or not.
  Stretch stretch_at(std::size_t element) const {
    if (collective_.kind == Collective::Kind::reduce_scatter) return {total() - element, 0};
    const std::size_t count = collective_.buffer.count, ranks = index(size());
    const std::size_t slice = ((element + 1) * ranks - 1) / count;  // the last one that begins here or before
    return {count * (slice + 1) / ranks - element, static_cast<int>(slice)};
  }

  // sum = the bytes of all sources from `start` on, from the source of `first` on: equal bits whoever computes it.
  void reduce_block(ReduceFunction function, std::byte* sum, std::size_t start, std::size_t count,
                    int first) const {
    const auto source = [&](int turn) { return sources_[index((first + turn) % size())] + start; };
    if (size() == 1) return copy_bytes(sum, source(0), count * element_bytes());
    function(sum, source(0), source(1), count);
    for (int turn = 2; turn < size(); ++turn) function(sum, sum, source(turn), count);
  }

  void meet() {
    const std::optional<Absence> absence = meeting_.meet(before_sleep_);
    if (!absence) return;
    meeting_.leave(absence->rank);
    throw Error(ErrorKind::temporary,
                fmt::format("rank {}: collective {}, {}: {}", name(rank()), number_,
                            describe(collective_, name(collective_.root)), absence->words));
  }

  void check_postings() const {
    for (int other = 0; other < size(); ++other) {
      const Posting& theirs = meeting_.posting(other, number_);
      if (theirs.number != number_ || !theirs.collective.matches(collective_))
        throw Error(ErrorKind::internal,
                    fmt::format("rank {}: collective {} is {}, but rank {} calls {}", name(rank()), number_,
                                describe(collective_, name(collective_.root)), name(other),
                                describe(theirs.collective, name(theirs.collective.root))));
    }
  }

  int name(int rank) const { return places_[index(rank)].name; }
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  const std::function<void()> before_sleep_ = [this] { tell_of_sleep(); };
  const std::shared_ptr<SharedSegments> segments_;  // shared with the other communicators on them
  const std::vector<SharedMeeting::Place> places_;  // by rank
  SharedMeeting meeting_;
  std::vector<std::byte*> sources_;  // by rank: what is read in the step of the moment
  Collective collective_;
  std::uint64_t number_ = 0;
  std::uint64_t chunks_ = 0;  // that passed the stage, on every rank alike
  std::optional<Error> failure_;
};

// Of this rank and of the others, by rank.
std::vector<SharedMeeting::Place> join_meeting(const SharedMemoryOptions& options, SharedSegments& segments) {
  const Party& party = options.party;
  const OwnSegment::Front own = segments.take_front();
  new (own.data) SharedControl;
  const std::vector<std::string> values =
      exchange(party, fmt::format("shared memory {} front", options.name),
               fmt::format("{} {}", own.place.piece, own.place.bytes), Deadline(options.join_deadline));
  std::vector<SharedMeeting::Place> places;
  for (int rank = 0; rank < party.size; ++rank) {
    const int name = party.name_of(rank);
    std::byte* front = own.data;
    if (rank != party.rank) {
      SharedPlace place;
      std::istringstream(values[static_cast<std::size_t>(rank)]) >> place.piece >> place.bytes;
      front = segments.at(name, place);
    }
    places.push_back({reinterpret_cast<SharedControl*>(front), segments.process(name), name});
  }
  return places;
}

}  // namespace

std::unique_ptr<Communicator> make_shared_memory(const SharedMemoryOptions& options,
                                                 std::shared_ptr<SharedSegments> segments) {
  std::vector<SharedMeeting::Place> places = join_meeting(options, *segments);
  return std::make_unique<SharedMemoryCommunicator>(options, std::move(segments), std::move(places));
}

SharedMemoryJoin join_shared_memory(const SharedMemoryOptions& options) {
  const Deadline deadline(options.join_deadline);
  const std::string name = fmt::format("shared memory {}", options.name);
  SegmentsJoin joined = join_segments(options.party, name, deadline);
  if (!joined.segments) return {nullptr, joined.problem, nullptr};
  SharedMemoryOptions rest = options;
  rest.join_deadline = deadline.remaining();
  return {make_shared_memory(rest, joined.segments), "", joined.segments};
}

}  // namespace fleetrun::comm
