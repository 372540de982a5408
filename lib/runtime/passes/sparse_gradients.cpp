// strategy.dgc: of a large gradient, each rank sends only the elements that are farthest from 0, and keeps the rest for later steps.
//
//   fc_grad ... -> w@GRAD                                 fc_grad ... -> w@GRAD
//   momentum param=w grad=w@GRAD velocity=w.velocity      dgc_select grad=w@GRAD param=w velocity=w.velocity residual=w.residual -> w.message
//                                                    =>   dgc_exchange grad=w@GRAD message=w.message -> w@GRAD w.gathered
//                                                         dgc_scatter grad=w@GRAD gathered=w.gathered -> w@GRAD
//                                                         dgc_momentum param=w grad=w@GRAD velocity=w.velocity
//
// Other passes see no gradient to sum there: w@GRAD becomes an activation. Small gradients stay as they are. What clips the norms of
// summed gradients leaves the large ones to dgc_select, which clips what one rank has made.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "runtime/ops/rules/sparse_schedule.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

constexpr std::int64_t kLeastElements = 16384;  // PaddlePaddle's limit (dgc_optimizer.py)

struct Settings {
  const job::DgcSpec& dgc;
  int ranks;
};

// At least one. A sparsity of 0.9 is a little above 0.9 as a double.
std::int64_t kept_of(std::int64_t elements, double sparsity) {
  constexpr double kRounding = 1e-6;
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(elements) * (1 - sparsity) + kRounding));
}

struct Totals {
  int gradients = 0;                          // large ones
  std::int64_t large = 0, all = 0, kept = 0;  // elements

  void add(std::int64_t elements, std::int64_t kept_of_them) {
    ++gradients;
    large += elements;
    kept += kept_of_them;
  }
};

ops::SparseSchedule schedule_for(const job::DgcSpec& dgc, std::int64_t elements) {
  ops::SparseSchedule schedule = {dgc.rampup_begin_step, dgc.rampup_step, {}};
  for (const double sparsity : dgc.sparsity.empty() ? job::kUsualSparsity : dgc.sparsity)
    schedule.kept.push_back(kept_of(elements, sparsity));
  return schedule;
}

bool is_sparse(const Program& program, ValueId gradient) {
  const Value& value = program.value(gradient);
  return value.kind == ValueKind::gradient && count_of(value.shape) >= kLeastElements;
}

// The limit of each large gradient, which its clip op gives up.
std::map<ValueId, double> take_limits(Program& program, int ranks) {
  std::map<ValueId, double> limits;
  for (Op& op : program.ops) {
    if (op.type != "clip_by_norm") continue;
    for (const ValueId id : op.inputs)
      if (is_sparse(program, id))
        limits[id] = std::get<double>(op.attributes.at("limit")) / std::sqrt(static_cast<double>(ranks));
    for (auto* ids : {&op.inputs, &op.outputs})
      std::erase_if(*ids, [&](ValueId id) { return limits.contains(id); });
  }
  std::erase_if(program.ops, [](const Op& op) { return op.type == "clip_by_norm" && op.inputs.empty(); });
  return limits;
}

// What the ranks exchange of one gradient.
struct Exchange {
  ValueId grad, param, velocity, residual, message, gathered;
  Attributes attributes;  // of all its ops
};

Exchange exchange_for(Program& program, const Op& update, const Settings& settings) {
  const ValueId param = update.inputs[0];
  const Value value = program.value(param);
  const ops::SparseSchedule schedule = schedule_for(settings.dgc, count_of(value.shape));
  const std::int64_t length = 2 * schedule.most();
  Exchange exchange = {.grad = update.inputs[1], .param = param, .velocity = update.inputs[2]};
  exchange.residual = program.add_value(
      {.name = value.name + ".residual", .shape = value.shape, .kind = ValueKind::state, .of = param});
  exchange.message =
      program.add_value({.name = value.name + ".message", .dtype = DType::i32, .shape = {length}});
  exchange.gathered = program.add_value(
      {.name = value.name + ".gathered", .dtype = DType::i32, .shape = {settings.ranks * length}});
  exchange.attributes = {{"ranks", std::int64_t{settings.ranks}}};
  ops::add_attributes(schedule, exchange.attributes);
  return exchange;
}

// The ops between the backward op that makes the gradient of this update and the update.
std::vector<Op> ops_of(const Exchange& exchange, const Op& update, double limit) {
  Attributes of_select = exchange.attributes;
  of_select["limit"] = limit;
  for (const char* name : {"mu", "use_nesterov", "weight_decay"})
    of_select[name] = update.attributes.at(name);
  return {{.type = "dgc_select",
           .inputs = {exchange.grad, exchange.param, exchange.velocity, exchange.residual},
           .outputs = {exchange.message, exchange.velocity, exchange.residual},
           .attributes = of_select,
           .role = Role::backward},
          {.type = "dgc_exchange",
           .inputs = {exchange.grad, exchange.message},
           .outputs = {exchange.grad, exchange.gathered},
           .attributes = exchange.attributes,
           .role = Role::communication},
          {.type = "dgc_scatter",
           .inputs = {exchange.grad, exchange.gathered},
           .outputs = {exchange.grad},
           .attributes = exchange.attributes,
           .role = Role::backward}};
}

// Puts the ops after the one that makes the gradient, which is their first input.
void insert_after_maker(Program& program, std::vector<Op> ops) {
  const ValueId gradient = ops.front().inputs.front();
  const auto maker = std::find_if(program.ops.begin(), program.ops.end(), [gradient](const Op& op) {
    return std::find(op.outputs.begin(), op.outputs.end(), gradient) != op.outputs.end();
  });
  program.ops.insert(maker + 1, std::make_move_iterator(ops.begin()), std::make_move_iterator(ops.end()));
}

}  // namespace

void sparse_gradients(Program& program, const PassContext& context) {
  const Settings settings = {context.strategy.dgc_configs, context.world_size};
  const std::map<ValueId, double> limits = take_limits(program, settings.ranks);
  Totals totals;
  std::vector<std::vector<Op>> inserted;
  for (Op& op : program.ops) {
    if (op.type != "momentum") continue;
    const ValueId gradient = op.inputs[1];
    const std::int64_t elements = count_of(program.value(gradient).shape);
    totals.all += elements;
    if (!is_sparse(program, gradient)) continue;
    const auto limit = limits.find(gradient);
    inserted.push_back(
        ops_of(exchange_for(program, op, settings), op, limit == limits.end() ? 0 : limit->second));
    program.value(gradient).kind = ValueKind::activation;
    op.type = "dgc_momentum";
    op.attributes["rampup_begin_step"] = std::int64_t{settings.dgc.rampup_begin_step};
    totals.add(elements, schedule_for(settings.dgc, elements).kept.back());
  }
  for (std::vector<Op>& ops : inserted) insert_after_maker(program, std::move(ops));
  context.tell(fmt::format(
      "dgc: {} with {} of all {} elements; each rank sends {} of these elements after the ramp-up. Smaller gradients are summed whole",
      plural(totals.gradients, "large gradient"), totals.large, totals.all, totals.kept));
}

}  // namespace fleetrun::runtime
