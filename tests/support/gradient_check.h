// An op's gradient rule against central finite differences along random directions.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/graph/builder.h"
#include "support/run_program.h"

namespace fleetrun::runtime::test {

using Ints = std::vector<std::int32_t>;
using Random = std::mt19937_64;

inline double dot(const Floats& a, const Floats& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                            [](float x, float y) { return static_cast<double>(x) * static_cast<double>(y); });
}

inline double norm(const Floats& a) { return std::sqrt(dot(a, a)); }

inline Floats random_floats(const SampleInput& input, Random& random) {
  Floats values(static_cast<std::size_t>(count_of(input.shape)));
  const double shift = input.fill == SampleInput::Fill::positive ? 1.0 : 0.0;
  const double half = input.fill == SampleInput::Fill::positive ? 0.5 : 1.0;
  std::uniform_real_distribution<double> uniform(shift - half, shift + half);
  for (float& value : values) value = static_cast<float>(uniform(random));
  if (input.fill != SampleInput::Fill::spread) return values;
  constexpr float kGap = 0.11F;  // values at odd multiples of half of it: 0.055 from 0, as op_def.h promises
  const std::size_t middle = values.size() / 2;
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = kGap * (static_cast<float>(i) - static_cast<float>(middle) + 0.5F);
  std::shuffle(values.begin(), values.end(), random);
  return values;
}

inline Ints random_labels(const SampleInput& input, Random& random) {
  Ints labels(static_cast<std::size_t>(count_of(input.shape)));
  std::uniform_int_distribution<std::int32_t> uniform(0, static_cast<std::int32_t>(input.limit) - 1);
  for (std::int32_t& label : labels) label = uniform(random);
  return labels;
}

// Each entry -1 or 1: the gradient along it is about as large as the gradient's norm.
inline Floats random_signs(std::size_t count, Random& random) {
  Floats signs(count);
  for (float& sign : signs) sign = (random() & 1) != 0 ? 1.0F : -1.0F;
  return signs;
}

// Gives one output of the op a gradient (a feed) and keeps what the rule says.
class RecordedRule : public GradientRule {
 public:
  RecordedRule(Builder& builder, OpView op, std::string output, ValueId seed)
      : builder_(builder), op_(op), output_(std::move(output)), seed_(seed) {}

  const OpView& forward() const override { return op_; }
  bool wants(std::string_view input) const override {
    return op_.has_input(input) && op_.input(input).dtype != DType::i32;
  }
  ValueId output_gradient(std::string_view output) const override {
    return output == output_ ? seed_ : kNone;
  }
  std::vector<ValueId> emit(const std::string& type, const Arguments& inputs, Attributes attributes,
                            const std::vector<std::string>& outputs) override {
    return builder_.add({.type = type,
                         .inputs = inputs,
                         .attributes = std::move(attributes),
                         .role = Role::backward,
                         .name = fmt::format("{}{}", type, builder_.program().ops.size()),
                         .outputs = outputs});
  }
  void set_gradient(std::string_view input, ValueId gradient) override {
    gradients[std::string(input)] = gradient;
  }

  std::map<std::string, ValueId> gradients;

 private:
  Builder& builder_;
  OpView op_;
  std::string output_;
  ValueId seed_;
};

// One op with its gradient as a program. Float inputs are parameters, so that their layout is chosen freely.
struct OpProgram {
  Program program;
  std::map<std::string, ValueId> inputs;
  std::map<std::string, ValueId> gradients;  // by input
  ValueId output = kNone;
  ValueId seed = kNone;  // the gradient of the output
};

inline OpProgram op_with_gradient(const OpTable& ops, const std::string& type, const Sample& sample,
                                  const std::string& output) {
  OpProgram made;
  Builder builder(made.program, ops);
  Arguments arguments;
  for (const auto& [name, input] : sample.inputs) {
    const bool labels = input.fill == SampleInput::Fill::labels;
    made.inputs[name] =
        labels ? builder.feed(name, input.shape, DType::i32) : builder.parameter(name, input.shape, {});
    arguments.emplace_back(name, made.inputs[name]);
  }
  builder.add({.type = type, .inputs = arguments, .attributes = sample.attributes, .name = "out"});
  const OpDef& def = find_op(ops, type);
  const Op op = made.program.op(0);
  made.output = op.outputs.at(static_cast<std::size_t>(def.output_index(output)));
  made.seed = builder.feed("seed", made.program.value(made.output).shape);
  RecordedRule rule(builder, OpView(def, made.program, op), output, made.seed);
  def.gradient(rule);
  made.gradients = rule.gradients;
  for (const auto& [name, gradient] : made.gradients) {
    if (made.program.value(gradient).kind != ValueKind::activation) continue;  // the seed itself
    made.program.value(gradient).kind = ValueKind::gradient;
    made.program.value(gradient).of = made.inputs.at(name);
  }
  return made;
}

class GradientCheck {
 public:
  GradientCheck(const OpTable& ops, const OpProgram& made, const Sample& sample, Device& device)
      : made_(made), run_(made.program, ops, device) {
    for (const auto& [name, input] : sample.inputs) {
      if (input.fill == SampleInput::Fill::labels) {
        run_.set(made_.inputs.at(name), random_labels(input, random_));
      } else {
        floats_[name] = random_floats(input, random_);
        run_.set(made_.inputs.at(name), floats_[name]);
      }
    }
    seed_ = random_floats({made_.program.value(made_.seed).shape}, random_);
    run_.set(made_.seed, seed_);
    run_.run();
  }

  // Empty when right.
  std::string check_input(const std::string& input, double tolerance) {
    const auto found = made_.gradients.find(input);
    if (found == made_.gradients.end()) return "there is no gradient of " + input;
    run_.run();
    const Floats gradient = run_.get(found->second);
    for (int direction = 0; direction < kDirections; ++direction) {
      const Floats along = random_signs(gradient.size(), random_);
      const double wanted = difference(input, along);
      const double got = dot(gradient, along);
      if (!(std::abs(got - wanted) <= tolerance * norm(gradient) + kRounding))
        return fmt::format("the gradient of {} along direction {} is {}, differences say {} (its norm is {})",
                           input, direction, got, wanted, norm(gradient));
    }
    return "";
  }

  std::vector<std::string> inputs() const {
    std::vector<std::string> names;
    for (const auto& [name, values] : floats_) names.push_back(name);
    return names;
  }

 private:
  static constexpr int kDirections = 6;
  static constexpr float kStep = 0.01F;      // below half the gap of SampleInput::Fill::spread
  static constexpr double kRounding = 1e-4;  // of f32 sums of a few hundred terms, over the step

  double output_with(const std::string& input, const Floats& along, float step) {
    Floats moved = floats_.at(input);
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += step * along[i];
    run_.set(made_.inputs.at(input), moved);
    run_.run();
    return dot(run_.get(made_.output), seed_);
  }

  double difference(const std::string& input, const Floats& along) {
    const double up = output_with(input, along, kStep);
    const double down = output_with(input, along, -kStep);
    run_.set(made_.inputs.at(input), floats_.at(input));
    return (up - down) / (2.0 * static_cast<double>(kStep));
  }

  Random random_{7};
  const OpProgram& made_;
  ProgramRun run_;
  std::map<std::string, Floats> floats_;
  Floats seed_;
};

// The outputs through which the op's rule lets a gradient flow.
inline std::vector<std::string> differentiable_outputs(const OpTable& ops, const std::string& type,
                                                       const Sample& sample) {
  std::vector<std::string> outputs;
  const OpDef& def = find_op(ops, type);
  for (int i = 0; i < static_cast<int>(def.outputs.size()); ++i) {
    try {
      op_with_gradient(ops, type, sample, def.output_name(i));
      outputs.push_back(def.output_name(i));
    } catch (const Error& refused) {
      if (refused.kind() != ErrorKind::config) throw;
    }
  }
  return outputs;
}

// Empty when every gradient of the sample is right to `tolerance` of its norm; else what is wrong.
inline std::string check_gradient(const OpTable& ops, const std::string& type, const Sample& sample,
                                  Device& device, double tolerance = 1e-2) {
  const std::vector<std::string> outputs = differentiable_outputs(ops, type, sample);
  if (outputs.empty()) return type + " lets no gradient through";
  const std::vector<std::string>& updated = find_op(ops, type).in_place;  // no gradient is asked of these
  for (const std::string& output : outputs) {
    const OpProgram made = op_with_gradient(ops, type, sample, output);
    GradientCheck check(ops, made, sample, device);
    for (const std::string& input : check.inputs()) {
      if (std::find(updated.begin(), updated.end(), input) != updated.end()) continue;
      if (const std::string wrong = check.check_input(input, tolerance); !wrong.empty())
        return fmt::format("{}, output {}: {}", type, output, wrong);
    }
  }
  return "";
}

}  // namespace fleetrun::runtime::test
