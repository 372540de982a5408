#include <doctest/doctest.h>

#include "support/run_program.h"
#include "support/small_net.h"

namespace fleetrun::runtime::scale_test {
namespace {

TEST_CASE("a bias of scale does not leak into the padding of a layout") {
  const auto device = make_cpu_device();
  for (const std::int64_t channels : {16, 20}) {  // 20: the last block of channels is padded
    Program program;
    Builder builder(program, all_ops());
    const ValueId image = builder.feed("image", {1, 3, 6, 6});
    const ValueId made = test::convolve(builder, "conv", image, channels, 3);
    const ValueId y = builder.op("y", "scale", {{"x", made}}, {{"scale", 2.0}, {"bias", 1.0}});
    test::ProgramRun run(program, all_ops(), *device);
    run.run();  // weights are 0: every y is the bias
    CHECK(run.sum_of_memory(y) == static_cast<double>(channels * 36));
  }
}

}  // namespace
}  // namespace fleetrun::runtime::scale_test
