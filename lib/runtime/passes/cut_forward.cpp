// Cuts the forward part into the stages of a pipeline, with about the same work in each. The stage of an op is its owner. A cut is a
// place where all later ops depend on one value alone (forward_cuts.h), which then travels from stage to stage.
//
//   fc x=image w=a.w -> y=a forward        fc x=image w=a.w -> y=a {owner=0} forward
//   fc x=a w=b.w -> y=b forward        =>  fc x=a w=b.w -> y=b {owner=1} forward
//
// The other parts get their stages when all layouts are decided (assign_stages.h). Throws Error(config) when the model has fewer
// stages than there are ranks.
#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "runtime/graph/owner_of.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/shared/forward_cuts.h"

namespace fleetrun::runtime {
namespace {

std::size_t place(int index) { return static_cast<std::size_t>(index); }

// The time that one element of a value takes, in multiplications: it comes from memory or a cache, and a core multiplies meanwhile.
constexpr double kElementCost = 16;

double elements(const Program& program, ValueId id) {
  return static_cast<double>(count_of(program.value(id).shape));
}

// Of convolutions and fully connected layers: each output of a channel takes as many products as the weights of a channel.
double products(const Program& program, const Op& op) {
  double sum = 0;
  for (const ValueId id : op.inputs) {
    if (id == kNone || program.value(id).kind != ValueKind::parameter) continue;
    const Shape& output = program.value(op.outputs.front()).shape;
    if (program.value(id).shape.size() < 2 || output.size() < 2) continue;
    sum += elements(program, op.outputs.front()) * elements(program, id) / static_cast<double>(output[1]);
  }
  return sum;
}

double cost_of(const Program& program, const Op& op) {
  double sum = products(program, op);
  for (const std::vector<ValueId>* ids : {&op.inputs, &op.outputs})
    for (const ValueId id : *ids)
      if (id != kNone && program.value(id).kind == ValueKind::activation)
        sum += kElementCost * elements(program, id);
  return sum;
}

bool reads_parameter(const Program& program, const Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) {
    return id != kNone && program.value(id).kind == ValueKind::parameter;
  });
}

// Chooses the cuts for which the most expensive stage is the cheapest.
class Balance {
 public:
  Balance(const Program& program, std::vector<Cut> cuts) : cuts_(std::move(cuts)) {
    const int ops = count_forward_ops(program);
    cuts_.push_back({ops - 1, kNone});  // the end
    cost_.push_back(0);
    parameters_.push_back(0);
    for (OpId id = 0; id < ops; ++id) {
      cost_.push_back(cost_.back() + cost_of(program, program.op(id)));
      parameters_.push_back(parameters_.back() + (reads_parameter(program, program.op(id)) ? 1 : 0));
    }
  }

  // The last op of each stage; fewer than `stages` when there are not as many.
  std::vector<OpId> ends(int stages) {
    std::vector<Step> best = first_stages();
    std::vector<std::vector<Step>> steps = {best};
    for (int stage = 1; stage < stages; ++stage) {
      best = one_more_stage(best);
      if (best.back().cost == kImpossible) break;
      steps.push_back(best);
    }
    std::vector<OpId> ends;
    std::size_t place = cuts_.size() - 1;
    for (std::size_t stage = steps.size(); stage-- > 0;) {
      ends.push_back(cuts_[place].op);
      place = steps[stage][place].before;
    }
    std::reverse(ends.begin(), ends.end());
    return ends;
  }

 private:
  static constexpr double kImpossible = std::numeric_limits<double>::infinity();
  struct Step {
    double cost = kImpossible;  // of the most expensive stage up to this cut
    std::size_t before = 0;     // the cut in front of the last stage
  };

  double cost(OpId first, OpId last) const {
    return parameters_[place(last + 1)] > parameters_[place(first)]
               ? cost_[place(last + 1)] - cost_[place(first)]
               : kImpossible;
  }

  std::vector<Step> first_stages() const {
    std::vector<Step> steps;
    for (const Cut& cut : cuts_) steps.push_back({cost(0, cut.op), 0});
    return steps;
  }

  std::vector<Step> one_more_stage(const std::vector<Step>& fewer) const {
    std::vector<Step> steps(cuts_.size());
    for (std::size_t end = 1; end < cuts_.size(); ++end)
      for (std::size_t before = 0; before < end; ++before) {
        const double most = std::max(fewer[before].cost, cost(cuts_[before].op + 1, cuts_[end].op));
        if (most < steps[end].cost) steps[end] = {most, before};
      }
    return steps;
  }

  std::vector<Cut> cuts_;
  std::vector<double> cost_;     // of the ops before each one
  std::vector<int> parameters_;  // ops before each one that read a parameter
};

// Everything that is fetched is made in the last stage.
std::vector<Cut> usable_cuts(const Program& program) {
  std::vector<Cut> cuts = forward_cuts(program);
  const auto first_fetched = std::find_if(program.ops.begin(), program.ops.end(), [&](const Op& op) {
    return std::any_of(op.outputs.begin(), op.outputs.end(), [&](ValueId id) {
      return std::find(program.fetches.begin(), program.fetches.end(), id) != program.fetches.end();
    });
  });
  const auto limit = static_cast<OpId>(first_fetched - program.ops.begin());
  std::erase_if(cuts, [limit](const Cut& cut) { return cut.op >= limit; });
  return cuts;
}

void tell_stages(const Program& program, const std::vector<OpId>& ends, const PassContext& context) {
  std::vector<std::string> shares;
  std::vector<double> costs(ends.size(), 0);
  std::size_t stage = 0;
  double sum = 0;
  for (OpId id = 0; id <= ends.back(); ++id) {
    if (id > ends[stage]) ++stage;
    costs[stage] += cost_of(program, program.op(id));
  }
  for (const double cost : costs) sum += cost;
  for (const double cost : costs) shares.push_back(fmt::format("{:.0f} %", 100 * cost / sum));
  context.tell(fmt::format("pipeline: stages with {} of the work (estimated)", fmt::join(shares, ", ")));
}

}  // namespace

void cut_forward(Program& program, const PassContext& context) {
  Balance balance(program, usable_cuts(program));
  const std::vector<OpId> ends = balance.ends(context.stages);
  if (static_cast<int>(ends.size()) < context.stages) {
    const std::size_t most = balance.ends(std::numeric_limits<int>::max()).size();
    throw Error(
        ErrorKind::config,
        fmt::format("strategy.pipeline: the model can be cut into {}, found {} ranks, wanted {} or fewer",
                    plural(static_cast<std::int64_t>(most), "stage"), context.stages, most),
        "strategy.pipeline=false trains with any number of ranks");
  }
  int stage = 0;
  for (OpId id = 0; id <= ends.back(); ++id) {
    if (id > ends[place(stage)]) ++stage;
    set_owner(program.ops[place(id)], stage);
  }
  tell_stages(program, ends, context);
}

}  // namespace fleetrun::runtime
