#include "runtime/exec/schedule.h"

#include <algorithm>

#include "runtime/exec/memory_plan.h"

namespace fleetrun::runtime {
namespace {

// A piece of arena memory: a value's or an op's scratch.
struct Tenant {
  Block block;
  std::vector<int> users;  // every op that touches it, ascending
};

class Planner {
 public:
  Planner(const Program& program, const std::vector<std::size_t>& scratch_bytes)
      : program_(program), scratch_bytes_(scratch_bytes), tenant_of_value_(program.values.size(), kNone) {
    schedule_.graph = TaskGraph(program.ops.size());
  }

  Schedule run() {
    order_by_values();
    chain_collectives();
    collect_tenants();
    place_tenants();
    return std::move(schedule_);
  }

 private:
  void order_by_values() {
    std::vector<int> writer(program_.values.size(), kNone);
    std::vector<std::vector<int>> readers(program_.values.size());  // since the last write
    for (int op = 0; op < static_cast<int>(program_.ops.size()); ++op) {
      for (const ValueId id : program_.op(op).inputs) {
        if (id == kNone) continue;
        const auto value = static_cast<std::size_t>(id);
        if (writer[value] != kNone) schedule_.graph.add_edge(writer[value], op);
        readers[value].push_back(op);
      }
      for (const ValueId id : program_.op(op).outputs) {
        if (id == kNone) continue;
        const auto value = static_cast<std::size_t>(id);
        for (const int reader : readers[value])
          if (reader != op) schedule_.graph.add_edge(reader, op);
        readers[value].clear();
        writer[value] = op;
      }
    }
  }

  void chain_collectives() {
    int previous = kNone;
    for (int op = 0; op < static_cast<int>(program_.ops.size()); ++op) {
      if (program_.op(op).role != Role::communication) continue;
      schedule_.graph.urgent[static_cast<std::size_t>(op)] = true;
      if (previous != kNone) schedule_.graph.add_edge(previous, op);
      previous = op;
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

  void collect_tenants() {
    const int ops = static_cast<int>(program_.ops.size());
    for (int op = 0; op < ops; ++op) {
      for (const ValueId id : program_.op(op).inputs) touch(id, op);
      for (const ValueId id : program_.op(op).outputs) touch(id, op);
    }
    for (const ValueId id : program_.fetches) {
      const int tenant = tenant_of_value_[static_cast<std::size_t>(id)];
      if (tenant != kNone) tenants_[static_cast<std::size_t>(tenant)].block.last = ops;  // nobody reuses it
    }
    first_scratch_ = tenants_.size();
    for (int op = 0; op < ops; ++op)
      tenants_.push_back({{scratch_bytes_.at(static_cast<std::size_t>(op)), op, op}, {op}});
  }

  void place_tenants() {
    std::vector<Block> blocks;
    for (const Tenant& tenant : tenants_) blocks.push_back(tenant.block);
    const MemoryPlan plan = plan_memory(blocks);
    schedule_.arena_bytes = plan.bytes;
    schedule_.unshared_bytes = plan.unshared_bytes;
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
  const std::vector<std::size_t>& scratch_bytes_;
  std::vector<int> tenant_of_value_;  // by ValueId
  std::vector<Tenant> tenants_;       // values first, then one per op for its scratch
  std::size_t first_scratch_ = 0;
  Schedule schedule_;
};

}  // namespace

Schedule plan_schedule(const Program& program, const std::vector<std::size_t>& scratch_bytes) {
  return Planner(program, scratch_bytes).run();
}

}  // namespace fleetrun::runtime
