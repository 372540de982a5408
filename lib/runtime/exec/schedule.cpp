#include "runtime/exec/schedule.h"

#include <algorithm>
#include <map>

#include "runtime/exec/memory_plan.h"
#include "runtime/graph/communicator_of.h"
#include "runtime/graph/every_of.h"

namespace fleetrun::runtime {
namespace {

// A piece of arena memory: a value's or an op's scratch.
struct Tenant {
  Block block;
  std::vector<int> users;  // every op that touches it, ascending
};

class Planner {
 public:
  Planner(const Program& program, const std::vector<OpMemory>& memory)
      : program_(program),
        memory_(memory),
        last_use_(program.values.size(), kNone),
        tenant_of_value_(program.values.size(), kNone) {
    schedule_.graph = TaskGraph(program.ops.size());
    for (const Op& op : program.ops) schedule_.every.push_back(every_of(op));
  }

  Schedule run() {
    order_by_values();
    chain_collectives();
    find_last_uses();
    collect_tenants();
    place_tenants();
    return std::move(schedule_);
  }

  std::size_t arena_bytes() {
    find_last_uses();
    collect_tenants();
    return plan_memory(blocks()).bytes;
  }

 private:
  void order_by_values() {
    std::vector<int> maker(program_.values.size(), kNone);          // the first that writes it
    std::vector<int> writer(program_.values.size(), kNone);         // the last so far
    std::vector<std::vector<int>> readers(program_.values.size());  // since the last write
    for (int op = 0; op < static_cast<int>(program_.ops.size()); ++op) {
      for (const ValueId id : program_.op(op).inputs) {
        if (id == kNone) continue;
        const auto value = static_cast<std::size_t>(id);
        if (writer[value] != kNone) schedule_.graph.add_edge(writer[value], op);
        readers[value].push_back(op);
      }
      for (const ValueId id : program_.op(op).after)
        if (const int before = maker[static_cast<std::size_t>(id)]; before != kNone)
          schedule_.graph.add_edge(before, op);
      for (const ValueId id : program_.op(op).outputs) {
        if (id == kNone) continue;
        const auto value = static_cast<std::size_t>(id);
        for (const int reader : readers[value])
          if (reader != op) schedule_.graph.add_edge(reader, op);
        readers[value].clear();
        writer[value] = op;
        if (maker[value] == kNone) maker[value] = op;
      }
    }
  }

  void chain_collectives() {
    std::map<int, int> previous;  // by communicator
    for (int op = 0; op < static_cast<int>(program_.ops.size()); ++op) {
      if (program_.op(op).role != Role::communication) continue;
      const int communicator = communicator_of(program_.op(op));
      schedule_.graph.urgent[static_cast<std::size_t>(op)] = true;
      schedule_.graph.lane[static_cast<std::size_t>(op)] = communicator;
      if (const auto before = previous.find(communicator); before != previous.end())
        schedule_.graph.add_edge(before->second, op);
      previous[communicator] = op;
    }
  }

  void touch(ValueId id, int op) {
    if (id == kNone || program_.value(id).kind != ValueKind::activation) return;
    int& tenant = tenant_of_value_[static_cast<std::size_t>(id)];
    if (tenant == kNone) {
      tenant = static_cast<int>(tenants_.size());
      tenants_.push_back({{program_.value(id).bytes(), op, op}, {}});
    }
    Tenant& found = tenants_[static_cast<std::size_t>(tenant)];
    found.block.last = op;
    if (found.users.empty() || found.users.back() != op) found.users.push_back(op);
  }

  void find_last_uses() {
    for (int op = 0; op < static_cast<int>(program_.ops.size()); ++op) {
      for (const ValueId id : program_.op(op).inputs)
        if (id != kNone) last_use_[static_cast<std::size_t>(id)] = op;
      for (const ValueId id : program_.op(op).outputs)
        if (id != kNone) last_use_[static_cast<std::size_t>(id)] = op;
    }
    for (const ValueId id : program_.fetches)
      last_use_[static_cast<std::size_t>(id)] = static_cast<int>(program_.ops.size());
  }

  bool can_take_place(ValueId output, ValueId input, int op) const {
    if (output == kNone || input == kNone) return false;
    const Value& out = program_.value(output);
    const Value& in = program_.value(input);
    return out.kind == ValueKind::activation && in.kind == ValueKind::activation &&
           out.bytes() == in.bytes() && last_use_[static_cast<std::size_t>(input)] == op &&
           tenant_of_value_[static_cast<std::size_t>(output)] == kNone;
  }

  // The output becomes one more value of the input's tenant, written when all others have left.
  void share_places(int op) {
    std::vector<int> taken;  // tenants: an input gives its place to one output only
    for (const auto& [output, input] : memory_[static_cast<std::size_t>(op)].may_share) {
      if (!can_take_place(output, input, op)) continue;
      const int tenant = tenant_of_value_[static_cast<std::size_t>(input)];
      if (std::find(taken.begin(), taken.end(), tenant) != taken.end()) continue;
      taken.push_back(tenant);
      tenant_of_value_[static_cast<std::size_t>(output)] = tenant;
      ++schedule_.in_place_pairs;
      shared_bytes_ += program_.value(output).bytes();
      for (const int user : tenants_[static_cast<std::size_t>(tenant)].users)
        if (user != op) schedule_.graph.add_edge(user, op);
    }
  }

  void collect_tenants() {
    const int ops = static_cast<int>(program_.ops.size());
    for (int op = 0; op < ops; ++op) {
      for (const ValueId id : program_.op(op).inputs) touch(id, op);
      share_places(op);
      for (const ValueId id : program_.op(op).outputs) touch(id, op);
    }
    for (const ValueId id : program_.fetches) {
      const int tenant = tenant_of_value_[static_cast<std::size_t>(id)];
      if (tenant != kNone) tenants_[static_cast<std::size_t>(tenant)].block.last = ops;  // nobody reuses it
    }
    first_scratch_ = tenants_.size();
    for (int op = 0; op < ops; ++op)
      tenants_.push_back({{memory_.at(static_cast<std::size_t>(op)).scratch_bytes, op, op}, {op}});
  }

  std::vector<Block> blocks() const {
    std::vector<Block> blocks;
    blocks.reserve(tenants_.size());
    for (const Tenant& tenant : tenants_) blocks.push_back(tenant.block);
    return blocks;
  }

  void place_tenants() {
    const MemoryPlan plan = plan_memory(blocks());
    schedule_.arena_bytes = plan.bytes;
    schedule_.unshared_bytes = plan.unshared_bytes + shared_bytes_;
    schedule_.value_offsets.resize(program_.values.size());
    for (std::size_t i = 0; i < program_.values.size(); ++i)
      if (tenant_of_value_[i] != kNone)
        schedule_.value_offsets[i] = plan.offsets[static_cast<std::size_t>(tenant_of_value_[i])];
    schedule_.scratch_offsets.assign(plan.offsets.begin() + static_cast<std::ptrdiff_t>(first_scratch_),
                                     plan.offsets.end());
    order_by_memory(plan);
  }

  // Whoever moves into memory that others used before waits until they have all gone.
  void order_by_memory(const MemoryPlan& plan) {
    for (std::size_t a = 0; a < tenants_.size(); ++a) {
      for (std::size_t b = 0; b < tenants_.size(); ++b) {
        if (tenants_[a].block.last >= tenants_[b].block.first) continue;
        const bool overlap = plan.offsets[a] < plan.offsets[b] + tenants_[b].block.bytes &&
                             plan.offsets[b] < plan.offsets[a] + tenants_[a].block.bytes;
        if (!overlap) continue;
        for (const int user : tenants_[a].users) schedule_.graph.add_edge(user, tenants_[b].block.first);
      }
    }
  }

  const Program& program_;
  const std::vector<OpMemory>& memory_;
  std::vector<int> last_use_;         // by ValueId: the op that touches it last
  std::vector<int> tenant_of_value_;  // by ValueId
  std::vector<Tenant> tenants_;       // values first, then one per op for its scratch
  std::size_t first_scratch_ = 0;
  std::size_t shared_bytes_ = 0;  // of outputs that took the place of an input
  Schedule schedule_;
};

}  // namespace

Schedule plan_schedule(const Program& program, const std::vector<OpMemory>& memory) {
  return Planner(program, memory).run();
}

std::size_t plan_arena_bytes(const Program& program, const std::vector<OpMemory>& memory) {
  return Planner(program, memory).arena_bytes();
}

void chain_all_collectives(const Program& program, TaskGraph& graph) {
  int previous = kNone;
  for (int op = 0; op < static_cast<int>(program.ops.size()); ++op) {
    if (program.op(op).role != Role::communication) continue;
    if (previous != kNone) graph.add_edge(previous, op);
    previous = op;
  }
}

}  // namespace fleetrun::runtime
