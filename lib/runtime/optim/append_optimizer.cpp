#include "runtime/optim/append_optimizer.h"

#include "base/error/error.h"
#include "runtime/optim/average_weights.h"
#include "runtime/optim/parameter_rules.h"

namespace fleetrun::runtime {
namespace {

struct Update {
  ValueId parameter = kNone;
  ValueId gradient = kNone;
  ValueId learning_rate = kNone;
};

Builder::Request sgd(Builder&, const job::OptimizerSpec& optimizer, const Update& update) {
  return {.type = "sgd",
          .inputs = {{"param", update.parameter},
                     {"grad", update.gradient},
                     {"learning_rate", update.learning_rate}},
          .attributes = {{"weight_decay", optimizer.weight_decay}},
          .role = Role::optimize};
}

Builder::Request momentum(Builder& builder, const job::OptimizerSpec& optimizer, const Update& update) {
  const Value parameter = builder.program().value(update.parameter);
  const ValueId velocity = builder.state(parameter.name + ".velocity", parameter.shape, {}, update.parameter);
  return {.type = "momentum",
          .inputs = {{"param", update.parameter},
                     {"grad", update.gradient},
                     {"velocity", velocity},
                     {"learning_rate", update.learning_rate}},
          .attributes = {{"mu", optimizer.momentum},
                         {"use_nesterov", optimizer.use_nesterov},
                         {"weight_decay", optimizer.weight_decay}},
          .role = Role::optimize};
}

// Of Adam and its kin.
Builder::Request by_moments(Builder& builder, const std::string& type, const job::OptimizerSpec& optimizer,
                            const Update& update) {
  const Value parameter = builder.program().value(update.parameter);
  const auto state = [&](const std::string& suffix, const Shape& shape, double start) {
    return builder.state(parameter.name + suffix, shape, {.value = start}, update.parameter);
  };
  return {.type = type,
          .inputs = {{"param", update.parameter},
                     {"grad", update.gradient},
                     {"moment1", state(".moment1", parameter.shape, 0)},
                     {"moment2", state(".moment2", parameter.shape, 0)},
                     {"beta1_pow", state(".beta1_pow", {1}, optimizer.beta1)},
                     {"beta2_pow", state(".beta2_pow", {1}, optimizer.beta2)},
                     {"learning_rate", update.learning_rate}},
          .attributes = {{"beta1", optimizer.beta1},
                         {"beta2", optimizer.beta2},
                         {"epsilon", optimizer.epsilon},
                         {"weight_decay", optimizer.weight_decay}},
          .role = Role::optimize};
}

Builder::Request lars(Builder& builder, const job::OptimizerSpec& optimizer, const Update& update) {
  Builder::Request request = momentum(builder, optimizer, update);
  request.type = "lars";
  request.attributes = {{"mu", optimizer.momentum},
                        {"lars_coeff", optimizer.lars_coeff},
                        {"weight_decay", optimizer.weight_decay},
                        {"epsilon", optimizer.epsilon}};
  return request;
}

Builder::Request request(Builder& builder, const job::OptimizerSpec& optimizer, const Update& update) {
  switch (optimizer.name) {
    case job::OptimizerName::sgd:
      return sgd(builder, optimizer, update);
    case job::OptimizerName::momentum:
      return momentum(builder, optimizer, update);
    case job::OptimizerName::adam:
      return by_moments(builder, "adam", optimizer, update);
    case job::OptimizerName::adamw:
      return by_moments(builder, "adamw", optimizer, update);
    case job::OptimizerName::lars:
      return lars(builder, optimizer, update);
    case job::OptimizerName::lamb:
      return by_moments(builder, "lamb", optimizer, update);
  }
  throw Error(ErrorKind::internal, "optimizer.name has a value without a name");
}

}  // namespace

void append_optimizer(Builder& builder, const job::OptimizerSpec& optimizer,
                      const std::vector<ValueId>& gradients) {
  const ValueId learning_rate = builder.feed("learning_rate", {1});
  LearningRates rates(builder, optimizer, learning_rate);
  for (const ValueId gradient : gradients) {
    const ValueId parameter = builder.program().value(gradient).of;
    job::OptimizerSpec of_parameter = optimizer;
    if (is_excluded(builder.program(), parameter, optimizer.exclude_from_weight_decay))
      of_parameter.weight_decay = 0;
    builder.add(request(builder, of_parameter, {parameter, gradient, rates.of(parameter)}));
  }
  if (optimizer.ema_decay > 0) append_averages(builder, optimizer.ema_decay);
}

}  // namespace fleetrun::runtime
