// What the optimizer's settings say about single parameters: which of them do not decay, and which have another learning rate.
#pragma once
#include <string>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// The name that Fleet's users know a parameter by, without the number of its layer: "batch_norm.b_0", "conv2d.w_0". It comes from the
// forward op that reads the parameter, before passes rewrite the program.
std::string fleet_name(const Program& program, ValueId parameter);

// Whether an entry of `excluded` is part of the parameter's name or of its fleet_name.
bool is_excluded(const Program& program, ValueId parameter, const std::vector<std::string>& excluded);

// Entries of `excluded` that exclude no parameter.
std::vector<std::string> without_effect(const Program& program, const std::vector<std::string>& excluded);

// The learning rate of a parameter: `learning_rate` itself, or a value that an op `scale` makes of it, one per factor.
class LearningRates {
 public:
  // Throws Error(config) for a name in learning_rate_factors with which no parameter begins.
  LearningRates(Builder& builder, const job::OptimizerSpec& optimizer, ValueId learning_rate);

  ValueId of(ValueId parameter);

 private:
  Builder& builder_;
  const std::map<std::string, double>& factors_;
  ValueId learning_rate_;
  std::map<double, ValueId> scaled_;  // by factor
};

}  // namespace fleetrun::runtime
