#include <doctest/doctest.h>

#include "support/gradient_check.h"

namespace fleetrun::runtime {
namespace {

using test::check_gradient;

TEST_CASE("the gradient of every op agrees with finite differences") {
  const auto device = make_cpu_device({.refuse_reference = true});
  for (const auto& [name, def] : all_ops()) {
    if (def.gradient == nullptr) continue;
    INFO("op " << name);
    REQUIRE((def.samples != nullptr));
    const std::vector<Sample> samples = def.samples();
    REQUIRE(!samples.empty());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      INFO("sample " << i);
      CHECK(check_gradient(all_ops(), name, samples[i], *device) == "");
    }
  }
}

TEST_CASE("every op has a kernel on the CPU, and every kernel an op") {
  const auto device = make_cpu_device();
  for (const auto& [name, def] : all_ops()) {
    INFO("op " << name);
    CHECK(def.name == name);
    CHECK(device->kernels().count(name) == 1);
  }
  CHECK(device->kernels().size() == all_ops().size());
}

}  // namespace
}  // namespace fleetrun::runtime
