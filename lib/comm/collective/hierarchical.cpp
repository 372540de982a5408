#include "comm/collective/hierarchical.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/collective_communicator.h"

namespace fleetrun::comm {
namespace {

BufferView part_of(BufferView buffer, std::size_t start, std::size_t count) {
  return {buffer.as<std::byte>() + start * size_of(buffer.dtype), count, buffer.dtype};
}

class HierarchicalCommunicator : public CollectiveCommunicator {
 public:
  HierarchicalCommunicator(const HierarchicalOptions& options, Circle group, Circle across)
      : CollectiveCommunicator(options.party.rank, options.party.size),
        algorithm_(options.algorithm),
        group_size_(options.group_size),
        group_circle_(std::move(group)),
        across_circle_(std::move(across)),
        group_(*group_circle_.communicator),
        across_(across_circle_.communicator.get()) {}

  std::unique_ptr<Memory> allocate(std::size_t bytes) override { return group_.allocate(bytes); }
  void on_sleep(std::function<void()> tell) override {
    if (across_ != nullptr) across_->on_sleep(tell);
    group_.on_sleep(std::move(tell));
  }
  void record_in(FlightRecords& records, const std::string& name) override {
    CollectiveCommunicator::record_in(records, name);
    group_.record_in(records, fmt::format("{}, group {}", name, group_index()));
    if (across_ != nullptr) across_->record_in(records, fmt::format("{}, places {}", name, place()));
  }

 private:
  void run(const Collective& collective, std::uint64_t number) override {
    try {
      work(collective);
    } catch (const Error& error) {
      throw error.with(fmt::format("running hierarchical collective {}, {}", number, describe(collective)));
    }
  }

  void work(const Collective& collective) {
    const BufferView buffer = collective.buffer;
    switch (collective.kind) {
      case Collective::Kind::all_reduce:
        return algorithm_ == HierarchicalAlgorithm::leader ? all_reduce_by_leaders(buffer, collective.op)
                                                           : all_reduce_by_slices(buffer, collective.op);
      case Collective::Kind::reduce:
        return reduce_to(buffer, collective.op, collective.root);
      case Collective::Kind::broadcast:
        return broadcast_from(buffer, collective.root);
      case Collective::Kind::reduce_scatter:
        return reduce_scatter_to(buffer, collective.mine, collective.op);
      case Collective::Kind::all_gather:
        return all_gather_from(collective.mine, buffer);
      case Collective::Kind::barrier:
        return meet_all();
    }
  }

  // Sent between groups, by each leader: 2 * bytes * (groups - 1) / groups.
  void all_reduce_by_leaders(BufferView buffer, ReduceOp op) {
    group_.reduce(buffer, op, 0);
    if (is_leader()) across_->all_reduce(buffer, op);
    group_.broadcast(buffer, 0);
  }

  // Sent between groups, by each rank: 2 * bytes * (groups - 1) / (groups * group size). What is left of equal
  // slices, less elements than a group has ranks, goes by the leaders.
  void all_reduce_by_slices(BufferView buffer, ReduceOp op) {
    const std::size_t slice = buffer.count / ranks_of_group();
    if (slice > 0) {
      const BufferView slices = part_of(buffer, 0, slice * ranks_of_group());
      const BufferView mine = part_of(buffer, slice * static_cast<std::size_t>(place()), slice);
      group_.reduce_scatter(slices, mine, op);
      across_->all_reduce(mine, op);
      group_.all_gather(mine, slices);
    }
    const std::size_t done = slice * ranks_of_group();
    if (done < buffer.count) all_reduce_by_leaders(part_of(buffer, done, buffer.count - done), op);
  }

  void reduce_to(BufferView buffer, ReduceOp op, int root) {
    group_.reduce(buffer, op, 0);
    if (is_leader()) across_->reduce(buffer, op, root / group_size_);
    if (is_group_of(root) && root % group_size_ != 0) group_.broadcast(buffer, 0);
  }

  void broadcast_from(BufferView buffer, int root) {
    if (is_group_of(root)) group_.broadcast(buffer, root % group_size_);
    if (is_leader()) across_->broadcast(buffer, root / group_size_);
    if (!is_group_of(root)) group_.broadcast(buffer, 0);
  }

  // There is no way to hand out slices that would not need memory: as much is sent as by an all_reduce.
  void reduce_scatter_to(BufferView all, BufferView mine, ReduceOp op) {
    all_reduce_by_leaders(all, op);
    copy(part_of(all, mine.count * static_cast<std::size_t>(rank()), mine.count), mine);
  }

  void all_gather_from(BufferView mine, BufferView all) {
    const std::size_t of_group = mine.count * ranks_of_group();
    const BufferView group = part_of(all, of_group * static_cast<std::size_t>(group_index()), of_group);
    group_.all_gather(mine, group);
    if (is_leader()) across_->all_gather(group, all);
    group_.broadcast(all, 0);
  }

  void meet_all() {
    group_.barrier();
    if (is_leader()) across_->barrier();
    group_.barrier();
  }

  static void copy(BufferView from, BufferView to) {
    if (from.data != to.data && from.count > 0) std::memcpy(to.data, from.data, from.bytes());
  }

  int place() const { return rank() % group_size_; }
  int group_index() const { return rank() / group_size_; }
  bool is_leader() const { return place() == 0; }
  bool is_group_of(int other) const { return other / group_size_ == group_index(); }
  std::size_t ranks_of_group() const { return static_cast<std::size_t>(group_size_); }

  const HierarchicalAlgorithm algorithm_;
  const int group_size_;
  const Circle group_circle_;
  const Circle across_circle_;
  Communicator& group_;
  Communicator* const across_;  // leader: null on ranks that are none
};

}  // namespace

std::unique_ptr<Communicator> make_hierarchical(const HierarchicalOptions& options,
                                                const MakeCommunicator& make) {
  const int group = options.group_size;
  if (group < 2 || options.party.size % group != 0)
    throw Error(ErrorKind::internal,
                fmt::format("groups of {} among {} ranks; must be above 1 and divide them", group,
                            options.party.size));
  const int place = options.party.rank % group;
  const CircleOptions circles = {options.party, group, options.name};
  Circle inside = make_group(circles, make);
  Circle across;
  if (options.algorithm == HierarchicalAlgorithm::scatter || place == 0) across = make_places(circles, make);
  return std::make_unique<HierarchicalCommunicator>(options, std::move(inside), std::move(across));
}

}  // namespace fleetrun::comm
