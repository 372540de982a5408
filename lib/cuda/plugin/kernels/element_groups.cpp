// The ops that passes make of elementwise ops.
#include "cuda/plugin/element_groups.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error/error.h"
#include "cuda/plugin/simple_kernel.h"
#include "runtime/ops/rules/elementwise_code.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;
using runtime::ElementwiseCode;
using runtime::ElementwisePlace;
using runtime::ElementwiseStep;

static_assert(kGroupArrays == runtime::kGroupInputs && kGroupResults == runtime::kGroupOutputs &&
              kMostGroupSteps == runtime::kGroupSteps);

std::unique_ptr<Kernel> make_add_act(const OpView& op, Device& device) {
  AddAct how = {.relu = op.text("act") == "relu", .act_of_y = op.text("of") == "y", .scale = 1, .bias = 0};
  if (!how.relu) {
    how.scale = static_cast<float>(op.number("scale"));
    how.bias = static_cast<float>(op.number("bias"));
  }
  return simple_kernel(
      op, device,
      [how, type = number_of(op, op.input("x")), x = op.input_id("x"), y = op.input_id("y"),
       out = op.output_id("out"),
       count = runtime::count_of(op.input("x").shape)](const RunContext& context, cudaStream_t stream) {
        add_act(type, context.data[x], context.data[y], context.data[out], how, count, stream);
      });
}

std::unique_ptr<Kernel> make_add_act_grad(const OpView& op, Device& device) {
  const ValueId more = op.has_input("more") ? op.input_id("more") : runtime::kNone;
  return simple_kernel(
      op, device,
      [more, type = number_of(op, op.input("y")), y = op.input_id("y"), dy = op.input_id("dy"),
       dx = op.output_id("dx"),
       count = runtime::count_of(op.input("y").shape)](const RunContext& context, cudaStream_t stream) {
        add_act_grad(type, context.data[y], context.data[dy], at_or_null<void>(context, more),
                     context.data[dx], count, stream);
      });
}

GroupStep::Do what_does(const std::string& op) {
  static const std::map<std::string, GroupStep::Do> kKnown = {
      {"elementwise_add", GroupStep::Do::add},   {"relu", GroupStep::Do::relu},
      {"relu_grad", GroupStep::Do::relu_grad},   {"relu6", GroupStep::Do::clamp},
      {"relu6_grad", GroupStep::Do::clamp_grad}, {"scale", GroupStep::Do::scale}};
  const auto found = kKnown.find(op);
  if (found == kKnown.end())
    throw Error(ErrorKind::internal, fmt::format("elementwise_group has no step {} on CUDA", op));
  return found->second;
}

// Makes steps of code, and gives each result a place that no later step reads.
class Placing {
 public:
  explicit Placing(const ElementwiseCode& code) : code_(code) {
    for (std::size_t i = 0; i < code.size(); ++i) add(i);
    for (int y = 0; y < kGroupResults; ++y)
      if (const ElementwisePlace output = {'y', y}; is_result(output)) {
        made_.kept[y] = place_of(output);
        made_.outputs = static_cast<std::uint8_t>(y + 1);
      }
  }
  const GroupSteps& made() const { return made_; }

 private:
  void add(std::size_t i) {
    const ElementwiseStep& step = code_[i];
    GroupStep& made = made_.steps[i];
    made.what = what_does(step.op);
    made.a = source(step.arguments.front());
    made.b = step.arguments.size() > 1 ? source(step.arguments[1]) : made.a;
    if (!step.numbers.empty()) made.first = static_cast<float>(step.numbers[0]);
    if (step.numbers.size() > 1) made.second = static_cast<float>(step.numbers[1]);
    std::erase_if(places_, [&](const auto& held) { return !is_read_after(held.second, i); });
    std::uint8_t place = 0;
    while (places_.count(place) > 0) ++place;
    places_[place] = step.result;
    made.result = place;
    made_.places = std::max<std::uint8_t>(made_.places, place + 1);
    made_.count = static_cast<std::uint8_t>(i + 1);
  }

  // Outputs are read at the end.
  bool is_read_after(const ElementwisePlace& result, std::size_t i) const {
    return result.kind == 'y' || std::any_of(code_.begin() + static_cast<std::ptrdiff_t>(i) + 1, code_.end(),
                                             [&](const ElementwiseStep& step) {
                                               return std::find(step.arguments.begin(), step.arguments.end(),
                                                                result) != step.arguments.end();
                                             });
  }

  bool is_result(const ElementwisePlace& place) const {
    return std::any_of(code_.begin(), code_.end(), [&](const auto& step) { return step.result == place; });
  }

  std::uint8_t place_of(const ElementwisePlace& result) const {
    for (const auto& [place, held] : places_)
      if (held == result) return place;
    throw Error(ErrorKind::internal, "elementwise_group reads what no step made");
  }

  std::uint8_t source(const ElementwisePlace& argument) const {
    if (argument.kind == 'x') return static_cast<std::uint8_t>(argument.index);
    return static_cast<std::uint8_t>(kGroupArrays + place_of(argument));
  }

  const ElementwiseCode& code_;
  GroupSteps made_ = {};
  std::map<std::uint8_t, ElementwisePlace> places_;  // what they hold
};

std::unique_ptr<Kernel> make_group(const OpView& op, Device& device) {
  const GroupSteps steps = Placing(runtime::parse_elementwise_code(op.text("code"))).made();
  std::vector<ValueId> inputs, outputs;
  for (int x = 0; x < kGroupArrays; ++x) inputs.push_back(op.input_id(fmt::format("x{}", x)));
  for (int y = 0; y < steps.outputs; ++y) outputs.push_back(op.output_id(fmt::format("y{}", y)));
  return simple_kernel(op, device,
                       [steps, inputs, outputs, count = elements_of(op, op.input("x0"))](
                           const RunContext& context, cudaStream_t stream) {
                         GroupArrays arrays = {};
                         for (std::size_t i = 0; i < inputs.size(); ++i)
                           arrays.in[i] = at_or_null(context, inputs[i]);
                         for (std::size_t i = 0; i < outputs.size(); ++i)
                           arrays.out[i] = at(context, outputs[i]);
                         run_group(steps, arrays, count, stream);
                       });
}

}  // namespace

KernelDef elementwise_add_act_kernel() {
  return {.choose_layouts = like_one_that_is_not_plain, .make = make_add_act};
}
KernelDef elementwise_add_act_grad_kernel() {
  return {.choose_layouts = like_one_that_is_not_plain, .make = make_add_act_grad};
}
KernelDef elementwise_group_kernel() {
  return {.choose_layouts = like_one_that_is_not_plain, .make = make_group};
}

}  // namespace fleetrun::cuda
