#include "job/keys/job_keys.h"
#include "job/keys/make_key.h"

namespace fleetrun::job {
namespace {

// In f32, times the smallest correction of Adam's moments, it is still above 0.
constexpr double kLeastEpsilon = 1e-30;

// Closer to 1, what f32 can hold of a power of beta is too little for the correction of the moments: an update would be off by
// 0.1 % here, 2 % at 0.999999, and would be NaN at 0.99999999, which is 1 in f32.
constexpr double kMostBeta = 0.99999;

Key learning_rate_keys() {
  const Section<ScheduleSpec> rate{
      [](JobSpec& spec) -> ScheduleSpec& { return spec.optimizer.learning_rate; }};
  const auto with = [](std::vector<std::string> names) { return Condition{"name", std::move(names)}; };
  return make_object_key(
      "learning_rate", "a number, or an object for a rate that changes",
      {
          make_key("name", rate(&ScheduleSpec::name),
                   "schedule; piecewise: one value per interval between boundaries; cosine: from base to end "
                   "along half a cosine; polynomial: from base to end in a straight line",
                   {.choices = {choice("constant", ScheduleName::constant),
                                choice("piecewise", ScheduleName::piecewise),
                                choice("cosine", ScheduleName::cosine),
                                choice("polynomial", ScheduleName::polynomial)}}),
          make_key("base", rate(&ScheduleSpec::base), "learning rate after the warm-up",
                   {.range = Range::above(0), .only_with = with({"constant", "cosine", "polynomial"})}),
          make_key("warmup_steps", rate(&ScheduleSpec::warmup_steps), "steps of linear warm-up at the start",
                   {.range = Range::from(0)}),
          make_key("unit", rate(&ScheduleSpec::unit), "unit of the boundaries",
                   {.choices = {choice("step", ScheduleUnit::step), choice("epoch", ScheduleUnit::epoch)},
                    .only_with = with({"piecewise"})}),
          make_key("boundaries", rate(&ScheduleSpec::boundaries),
                   "steps or epochs at which the next value starts, ascending",
                   {.range = Range::from(1),
                    .least_items = 1,
                    .required = true,
                    .only_with = with({"piecewise"})}),
          make_key("values", rate(&ScheduleSpec::values), "learning rates, one more than boundaries",
                   {.range = Range::above(0),
                    .least_items = 1,
                    .required = true,
                    .only_with = with({"piecewise"})}),
          make_key("end", rate(&ScheduleSpec::end), "learning rate at the end of the training",
                   {.range = Range::from(0), .only_with = with({"cosine", "polynomial"})}),
      },
      {.shorthand = "base"});
}

Key gradient_clip_keys() {
  const Section<GradientClipSpec> clip{
      [](JobSpec& spec) -> GradientClipSpec& { return spec.optimizer.gradient_clip; }};
  return make_object_key(
      "gradient_clip", "limit of the gradients that the optimizer reads",
      {
          make_key(
              "by", clip(&GradientClipSpec::by),
              "what to limit: each value, the norm of each gradient, or the norm of all gradients together",
              {.choices = {choice("none", ClipBy::none), choice("value", ClipBy::value),
                           choice("norm", ClipBy::norm), choice("global_norm", ClipBy::global_norm)}}),
          make_key("limit", clip(&GradientClipSpec::limit), "largest value or norm",
                   {.range = Range::above(0),
                    .required = true,
                    .only_with = Condition{"by", {"value", "norm", "global_norm"}}}),
      });
}

}  // namespace

Key optimizer_keys() {
  const Section<OptimizerSpec> optimizer{[](JobSpec& spec) -> OptimizerSpec& { return spec.optimizer; }};
  const Range below_one{.least = 0, .most = 1, .below_most = true};
  const Range beta = Range::between(0, kMostBeta);
  const Condition with_velocity{"name", {"momentum", "lars"}};
  const Condition with_nesterov{"name", {"momentum"}};
  const Condition with_moments{"name", {"adam", "adamw", "lamb"}};
  return make_object_key(
      "optimizer", "how gradients update the parameters",
      {
          make_key(
              "name", optimizer(&OptimizerSpec::name), "update rule of the parameters",
              {.choices = {choice("sgd", OptimizerName::sgd), choice("momentum", OptimizerName::momentum),
                           choice("adam", OptimizerName::adam), choice("adamw", OptimizerName::adamw),
                           choice("lars", OptimizerName::lars), choice("lamb", OptimizerName::lamb)}}),
          learning_rate_keys(),
          make_key("momentum", optimizer(&OptimizerSpec::momentum),
                   "momentum factor; momentum: v = momentum * v + g; p -= rate * v",
                   {.range = below_one, .only_with = with_velocity}),
          make_key("use_nesterov", optimizer(&OptimizerSpec::use_nesterov),
                   "Nesterov update: p -= rate * (g + momentum * v)", {.only_with = with_nesterov}),
          make_key("beta1", optimizer(&OptimizerSpec::beta1), "decay rate of Adam's first moment",
                   {.range = beta, .only_with = with_moments}),
          make_key("beta2", optimizer(&OptimizerSpec::beta2), "decay rate of Adam's second moment",
                   {.range = beta, .only_with = with_moments}),
          make_key("epsilon", optimizer(&OptimizerSpec::epsilon),
                   "small number that keeps Adam's divisor above 0",
                   {.range = Range::from(kLeastEpsilon), .only_with = with_moments}),
          make_key("lars_coeff", optimizer(&OptimizerSpec::lars_coeff),
                   "LARS's trust coefficient, which needs a weight_decay above 0",
                   {.range = Range::above(0), .only_with = Condition{"name", {"lars"}}}),
          make_key("weight_decay", optimizer(&OptimizerSpec::weight_decay),
                   "L2 penalty: g += weight_decay * p; adamw, lars and lamb decay as their papers say",
                   {.range = Range::from(0)}),
          make_key("exclude_from_weight_decay", optimizer(&OptimizerSpec::exclude_from_weight_decay),
                   "a parameter does not decay if its name contains one of these texts; Fleet's texts "
                   "batch_norm (all parameters of batch norms) and .b_0 (biases) work, too"),
          gradient_clip_keys(),
          make_key("learning_rate_factors", optimizer(&OptimizerSpec::learning_rate_factors),
                   "a factor of the learning rate for each beginning of a parameter's name; if several "
                   "beginnings match, the longest one counts",
                   {.range = Range::from(0)}),
          make_key("ema_decay", optimizer(&OptimizerSpec::ema_decay),
                   "decay of the moving averages of all weights; 0: no averages", {.range = below_one}),
          make_key("ema_evaluate", optimizer(&OptimizerSpec::ema_evaluate),
                   "evaluates and exports the moving averages instead of the weights"),
      });
}

}  // namespace fleetrun::job
