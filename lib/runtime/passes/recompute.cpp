// Trades computation for memory (Chen et al. 2016, arXiv:1604.06174). Of the forward pass it keeps only the values at the cuts
// between segments. The other values of a segment are computed again right before the backward pass needs them.
//   a -> [x1 -> x2] -> b -> ...  b@GRAD -> x2_grad(x1, x2)
//   a -> [x1 -> x2] -> b -> ...  b@GRAD -> [a -> x1' -> x2'] -> x2_grad(x1', x2')
// A cut is a place where all later ops depend on one value alone. The cuts are those that strategy.recompute_configs.checkpoints
// names, or those that need the least memory. The last segment is not computed again, as its gradients come first. Small values
// (vectors: statistics of channels, sums) and values that other ranks contributed to are kept. An op that runs again changes no state.
// Runs after the backward pass is appended. Throws Error(config) for a checkpoint that is not a cut.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "runtime/graph/owner_of.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/shared/forward_cuts.h"

namespace fleetrun::runtime {
namespace {

constexpr int kMostSegments = 64;  // that are tried: more only repeat what fewer reach
constexpr const char* kKey = "strategy.recompute_configs.checkpoints";

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// More than 200 lines, because the search for the cuts and the rewrite share what is known of each value.
class Recompute {
 public:
  Recompute(Program& program, const PassContext& context) : program_(program), context_(context) {
    forward_ops_ = count_forward_ops(program);
    find_uses();
    find_cuts();
  }

  void run() {
    const std::vector<std::string>& names = context_.strategy.recompute_configs.checkpoints;
    const std::vector<Cut> chosen = names.empty() ? cheapest_cuts() : named_cuts(names);
    std::map<OpId, std::vector<Op>> again;  // in front of which op
    OpId begin = 0;
    int repeated = 0;
    for (const Cut& cut : chosen) {
      if (auto [place, ops] = repeat(begin, cut); !ops.empty()) {
        repeated += static_cast<int>(ops.size());
        again[place] = std::move(ops);
      }
      begin = cut.op + 1;
    }
    insert(again);
    context_.tell(
        fmt::format("recompute: {} of {} forward ops are run again, in {} segments; checkpoints: {}",
                    repeated, forward_ops_, again.size(), names_of(chosen)));
  }

 private:
  void find_uses() {
    writer_.assign(program_.values.size(), kNone);
    first_backward_use_.assign(program_.values.size(), kNone);
    for (OpId id = 0; id < static_cast<OpId>(program_.ops.size()); ++id) {
      const Op& op = program_.op(id);
      for (const ValueId value : op.inputs)
        if (value != kNone && id >= forward_ops_ && first_backward_use_[at(value)] == kNone)
          first_backward_use_[at(value)] = id;
      for (const ValueId value : op.outputs)
        if (value != kNone && writer_[at(value)] == kNone) writer_[at(value)] = id;
    }
  }

  bool is_activation(ValueId id) const {
    return id != kNone && program_.value(id).kind == ValueKind::activation;
  }

  // What a segment may lose: the others are vectors, or came from other ranks, or cannot be made twice: sync_batch_norm
  // takes its sums as distances from the running mean, which it then moves.
  bool can_be_made_again(ValueId id) const {
    if (!is_activation(id) || program_.value(id).shape.size() < 2) return false;
    const Op& op = program_.op(writer_[at(id)]);
    return op.role == Role::forward && op.type != "sync_batch_norm";
  }

  void find_cuts() {
    for (const Cut& cut : forward_cuts(program_))
      if (can_be_made_again(cut.value) || ends_stage(cut)) cuts_.push_back(cut);
  }

  // A segment is within a stage of a pipeline.
  bool ends_stage(const Cut& cut) const {
    return owner_of(program_.op(cut.op)) != owner_of(program_.op(cut.op + 1));
  }

  // What is held of the ops from `begin` to the cut until their gradients are made, but for the value at the cut.
  std::size_t bytes_inside(OpId begin, OpId end, ValueId kept) const {
    std::size_t bytes = 0;
    for (OpId id = begin; id <= end; ++id)
      for (const ValueId value : program_.op(id).outputs)
        if (value != kept && can_be_made_again(value) && writer_[at(value)] == id &&
            first_backward_use_[at(value)] != kNone)
          bytes += program_.value(value).bytes();
    return bytes;
  }

  // Segments are closed at the first cut after which they hold more than `most`; and what is held then at most.
  std::pair<std::vector<Cut>, std::size_t> cuts_for(std::size_t most) const {
    std::vector<Cut> chosen;
    std::size_t kept = 0, largest = 0;
    OpId begin = 0;
    for (const Cut& cut : cuts_) {
      const std::size_t inside = bytes_inside(begin, cut.op, cut.value);
      if (inside < most && !ends_stage(cut)) continue;
      largest = std::max(largest, inside);
      kept += program_.value(cut.value).bytes();
      chosen.push_back(cut);
      begin = cut.op + 1;
    }
    largest = std::max(largest, bytes_inside(begin, forward_ops_ - 1, kNone));
    return {chosen, kept + largest};
  }

  std::vector<Cut> cheapest_cuts() const {
    const std::size_t all = bytes_inside(0, forward_ops_ - 1, kNone);
    std::pair<std::vector<Cut>, std::size_t> best = cuts_for(all + 1);
    for (int segments = 2; segments <= kMostSegments; ++segments)
      if (auto candidate = cuts_for(std::max<std::size_t>(1, all / at(segments)));
          candidate.second < best.second)
        best = std::move(candidate);
    return best.first;
  }

  // A value carries on alone from where it is made to where it is read: the first of these places is its cut.
  std::vector<Cut> named_cuts(const std::vector<std::string>& names) const {
    std::vector<Cut> chosen;
    for (const std::string& name : names) {
      const auto found = std::find_if(cuts_.begin(), cuts_.end(),
                                      [&](const Cut& cut) { return program_.value(cut.value).name == name; });
      if (found == cuts_.end()) refuse(name);
      chosen.push_back(*found);
    }
    std::copy_if(cuts_.begin(), cuts_.end(), std::back_inserter(chosen),
                 [&](const Cut& cut) { return ends_stage(cut); });
    std::sort(chosen.begin(), chosen.end(), [](const Cut& a, const Cut& b) { return a.op < b.op; });
    chosen.erase(
        std::unique(chosen.begin(), chosen.end(), [](const Cut& a, const Cut& b) { return a.op == b.op; }),
        chosen.end());
    return chosen;
  }

  [[noreturn]] void refuse(const std::string& name) const {
    throw Error(ErrorKind::config,
                fmt::format("{} has \"{}\", wanted values by which the whole forward pass goes: {}", kKey,
                            name, names_of(cuts_)));
  }

  std::string names_of(const std::vector<Cut>& cuts) const {
    std::vector<std::string> names;
    for (const Cut& cut : cuts)
      if (names.empty() || names.back() != program_.value(cut.value).name)
        names.push_back(program_.value(cut.value).name);
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  }

  // The ops that make again what the backward pass reads of a segment, and in front of which op.
  std::pair<OpId, std::vector<Op>> repeat(OpId begin, const Cut& cut) {
    OpId place = kNone;
    std::vector<bool> wanted(program_.values.size(), false);
    const auto want = [&](ValueId value) {
      if (value != cut.value && can_be_made_again(value) && writer_[at(value)] >= begin &&
          writer_[at(value)] <= cut.op)
        wanted[at(value)] = true;
    };
    for (OpId id = forward_ops_; id < static_cast<OpId>(program_.ops.size()); ++id)
      for (const ValueId value : program_.op(id).inputs) {
        if (value == kNone) continue;
        want(value);
        if (place == kNone && wanted[at(value)]) place = id;
      }
    std::vector<OpId> order;
    for (OpId id = cut.op; id >= begin; --id) {
      const Op& op = program_.op(id);
      if (std::none_of(op.outputs.begin(), op.outputs.end(),
                       [&](ValueId value) { return value != kNone && wanted[at(value)]; }))
        continue;
      order.push_back(id);
      for (const ValueId input : op.inputs)
        if (input != kNone) want(input);
    }
    std::reverse(order.begin(), order.end());
    std::vector<Op> ops;
    for (const OpId id : order) ops.push_back(again(program_.op(id), cut.value));
    return {place, std::move(ops)};
  }

  // A copy that makes values of its own, and leaves states and what is kept at the cut as they are.
  Op again(Op op, ValueId kept) {
    op.role = Role::backward;
    for (ValueId& input : op.inputs) input = newest(input);
    for (ValueId& output : op.outputs) {
      if (!is_activation(output)) continue;  // a state, which stays as it is
      Value copy = program_.value(output);
      copy.name += ".again";
      const ValueId made = program_.add_value(std::move(copy));
      if (output != kept && can_be_made_again(output)) made_again_[output] = made;
      output = made;
    }
    // Running statistics move by 1 - momentum.
    if (const auto momentum = op.attributes.find("momentum"); momentum != op.attributes.end())
      momentum->second = 1.0;
    return op;
  }

  ValueId newest(ValueId value) const {
    const auto found = made_again_.find(value);
    return found == made_again_.end() ? value : found->second;
  }

  void insert(std::map<OpId, std::vector<Op>>& again) {
    std::vector<Op> ops;
    for (OpId id = 0; id < static_cast<OpId>(program_.ops.size()); ++id) {
      if (const auto found = again.find(id); found != again.end())
        std::move(found->second.begin(), found->second.end(), std::back_inserter(ops));
      Op& op = program_.ops[at(id)];
      if (id >= forward_ops_)
        for (ValueId& input : op.inputs) input = newest(input);
      ops.push_back(std::move(op));
    }
    program_.ops = std::move(ops);
  }

  Program& program_;
  const PassContext& context_;
  int forward_ops_ = 0;                   // those before the backward pass
  std::vector<OpId> writer_;              // by ValueId: the first
  std::vector<OpId> first_backward_use_;  // by ValueId, or later
  std::vector<Cut> cuts_;                 // all there are
  std::map<ValueId, ValueId> made_again_;
};

}  // namespace

void recompute(Program& program, const PassContext& context) { Recompute(program, context).run(); }

}  // namespace fleetrun::runtime
