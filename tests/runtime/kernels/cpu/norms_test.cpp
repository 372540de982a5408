// Norms that optimizers and clipping use.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/run_op.h"
#include "support/test_device.h"

namespace fleetrun::runtime::norms_test {
namespace {

using test::Floats;

constexpr std::int64_t kMany = 100'003;  // several blocks, the last one short

Floats waves(double phase) {
  Floats values(kMany);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(phase + 0.37 * static_cast<double>(i)));
  return values;
}

// The first output of an op on the test's device.
Floats run_op(const std::string& type, const std::map<std::string, test::Given>& inputs,
              const Attributes& attributes) {
  const auto device = test::make_test_device();
  return test::OpRun(type, inputs, attributes, *device).output(find_op(all_ops(), type).output_name(0));
}

Floats updated(const std::string& type, int team) {
  const auto device = test::make_test_device();
  device->enter_thread(team);
  std::map<std::string, test::Given> inputs = {
      {"param", {{kMany}, waves(1)}}, {"grad", {{kMany}, waves(2)}}, {"learning_rate", {{1}, Floats{0.1F}}}};
  Attributes attributes = {{"weight_decay", 0.01}, {"epsilon", 0.5}};
  if (type == "lars") {
    inputs["velocity"] = {{kMany}, waves(3)};
    attributes.insert({{"mu", 0.9}, {"lars_coeff", 0.5}});
  } else {
    inputs["moment1"] = {{kMany}, waves(3)};
    inputs["moment2"] = {{kMany}, Floats(kMany, 0.5F)};
    inputs["beta1_pow"] = inputs["beta2_pow"] = {{1}, Floats{0.5F}};
    attributes.insert({{"beta1", 0.9}, {"beta2", 0.99}});
  }
  return test::OpRun(type, inputs, attributes, *device).output("param");
}

TEST_CASE("LARS and LAMB give the same bits with any number of threads") {
  for (const char* type : {"lars", "lamb"}) CHECK(updated(type, 1) == updated(type, 2));
}

TEST_CASE("gradients below the limit stay as they are; those above get its norm; NaN stays NaN") {
  const auto clip = [](const std::string& type, const Floats& grad) {
    return run_op(type, {{"grad", {{static_cast<std::int64_t>(grad.size())}, grad}}}, {{"limit", 5.0}});
  };
  CHECK(clip("clip_by_norm", {3, -4}) == Floats{3, -4});
  CHECK(clip("clip_by_norm", {6, -8}) == Floats{3, -4});
  CHECK(clip("clip_by_value", {6, -8, 1}) == Floats{5, -5, 1});
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(clip("clip_by_value", {kNan})[0]));
  CHECK(std::isnan(clip("clip_by_norm", {kNan, 1})[1]));
}

TEST_CASE("a parameter or gradient of zeros has the plain learning rate in LARS, and the ratio 1 in LAMB") {
  const auto lars = [](float param, float grad) {
    return run_op("lars",
                  {{"param", {{1}, Floats{param}}},
                   {"grad", {{1}, Floats{grad}}},
                   {"velocity", {{1}, Floats{0}}},
                   {"learning_rate", {{1}, Floats{0.5F}}}},
                  {{"mu", 0.9}, {"lars_coeff", 0.001}, {"weight_decay", 0.25}, {"epsilon", 0.0}})[0];
  };
  CHECK(lars(0, 2) == -1);
  CHECK(lars(2, 0) == 1.75F);
  const Floats lamb = run_op("lamb",
                             {{"param", {{1}, Floats{0}}},
                              {"grad", {{1}, Floats{2}}},
                              {"moment1", {{1}, Floats{0}}},
                              {"moment2", {{1}, Floats{0}}},
                              {"beta1_pow", {{1}, Floats{0.5F}}},
                              {"beta2_pow", {{1}, Floats{0.75F}}},
                              {"learning_rate", {{1}, Floats{0.5F}}}},
                             {{"beta1", 0.5}, {"beta2", 0.75}, {"epsilon", 2.0}, {"weight_decay", 0.25}});
  CHECK(lamb == Floats{-0.25F});  // 2 / (2 + 2), half of that
}

}  // namespace
}  // namespace fleetrun::runtime::norms_test
