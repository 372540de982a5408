#include "runtime/optim/append_optimizer.h"

#include "base/error/error.h"

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

Builder::Request adam(Builder& builder, const job::OptimizerSpec& optimizer, const Update& update) {
  const Value parameter = builder.program().value(update.parameter);
  const auto state = [&](const std::string& suffix, const Shape& shape, double start) {
    return builder.state(parameter.name + suffix, shape, {.value = start}, update.parameter);
  };
  return {.type = "adam",
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

Builder::Request request(Builder& builder, const job::OptimizerSpec& optimizer, const Update& update) {
  switch (optimizer.name) {
    case job::OptimizerName::sgd:
      return sgd(builder, optimizer, update);
    case job::OptimizerName::momentum:
      return momentum(builder, optimizer, update);
    case job::OptimizerName::adam:
      return adam(builder, optimizer, update);
    default:
      throw Error(ErrorKind::config, "optimizer.name: this optimizer is not supported by this build");
  }
}

}  // namespace

void append_optimizer(Builder& builder, const job::OptimizerSpec& optimizer,
                      const std::vector<ValueId>& gradients) {
  const ValueId learning_rate = builder.feed("learning_rate", {1});
  for (const ValueId gradient : gradients) {
    const ValueId parameter = builder.program().value(gradient).of;
    builder.add(request(builder, optimizer, {parameter, gradient, learning_rate}));
  }
}

}  // namespace fleetrun::runtime
