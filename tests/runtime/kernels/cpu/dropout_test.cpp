#include <doctest/doctest.h>

#include <algorithm>

#include "support/run_op.h"

namespace fleetrun::runtime::dropout_test {
namespace {

using test::Floats;
using test::OpRun;

constexpr std::int64_t kCount = 10'001;  // no multiple of 4, and enough for two threads

struct Draw {
  std::string type = "dropout";
  double p = 0.25;
  std::int64_t key = 3;
  std::uint64_t seed = 1;
  std::uint64_t step = 0;
  int team = 1;
};

// Of ones: 0 or 1 / (1 - p) each.
Floats drawn(const Draw& draw) {
  const auto device = make_cpu_device();
  device->enter_thread(draw.team);
  const std::string input = draw.type == "dropout" ? "x" : "dy";
  OpRun run(draw.type, {{input, {{kCount}, Floats(kCount, 1.0F)}}}, {{"p", draw.p}, {"key", draw.key}},
            *device);
  run.program().context().seed = draw.seed;
  run.program().context().step = draw.step;
  run.program().run();
  return run.output(draw.type == "dropout" ? "y" : "dx");
}

TEST_CASE("dropout drops about a share p and scales the rest up") {
  const Floats y = drawn({});
  const auto dropped = std::count(y.begin(), y.end(), 0.0F);
  CHECK(dropped > 0.23 * kCount);  // 0.25 with a deviation of 0.0043
  CHECK(dropped < 0.27 * kCount);
  CHECK(std::count(y.begin(), y.end(), 1.0F / 0.75F) == kCount - dropped);
}

TEST_CASE("the gradient passes where the value passed, and nowhere else") {
  CHECK(drawn({.type = "dropout_grad"}) == drawn({}));
}

TEST_CASE("what is dropped depends on seed, step and key, and not on the threads") {
  const Floats y = drawn({});
  CHECK(drawn({.team = 2}) == y);
  CHECK(drawn({.seed = 2}) != y);
  CHECK(drawn({.step = 1}) != y);
  CHECK(drawn({.key = 4}) != y);
}

TEST_CASE("dropout of p 0 changes nothing") { CHECK(drawn({.p = 0.0}) == Floats(kCount, 1.0F)); }

}  // namespace
}  // namespace fleetrun::runtime::dropout_test
