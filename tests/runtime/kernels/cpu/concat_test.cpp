#include <doctest/doctest.h>

#include <cstdlib>
#include <numeric>

#include "support/run_program.h"
#include "support/small_net.h"

namespace fleetrun::runtime::concat_test {
namespace {

using test::Floats;
using test::ProgramRun;

// Two convolutions of one image, joined along the channels, and a third over both.
Program branches(std::int64_t left, std::int64_t right) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.feed("image", {2, 16, 5, 6});
  const ValueId x = test::convolve(builder, "x", image, left, 1);
  const ValueId y = test::convolve(builder, "y", image, right, 1);
  const ValueId joined = builder.op("joined", "concat", {{"x", x}, {"y", y}}, {{"axis", std::int64_t{1}}});
  const ValueId last = test::convolve(builder, "last", joined, 16, 1);
  const ValueId seed = builder.feed("seed", {2, left + right, 5, 6});
  builder.add({.type = "elementwise_add", .inputs = {{"x", joined}, {"y", seed}}, .name = "djoined"});
  builder.add({.type = "concat_grad",
               .inputs = {{"djoined", builder.program().find("djoined")}},
               .attributes = {{"axis", std::int64_t{1}}, {"split", left}},
               .name = "parts"});
  program.fetches.push_back(last);
  return program;
}

Floats counting(std::int64_t count) {
  Floats values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST_CASE("concat joins and parts whole blocks of channels as they lie, others in plain order") {
  const auto device = make_cpu_device();
  const bool blocks = __builtin_cpu_supports("avx512bw") && std::getenv("DNNL_MAX_CPU_ISA") == nullptr;
  for (const auto& [left, right] : {std::pair{16, 32}, std::pair{16, 20}, std::pair{5, 32}}) {
    INFO(left << " and " << right << " channels");
    ProgramRun run(branches(left, right), all_ops(), *device);
    const Program& program = run.program();
    run.set(program.find("x.b"), counting(left));
    run.set(program.find("y.b"), counting(right));
    run.set(program.find("seed"), Floats(static_cast<std::size_t>(2 * (left + right) * 30), 0.5F));
    run.run();
    const bool whole = left % 16 == 0 && right % 16 == 0;
    if (blocks) CHECK(program.value(program.find("joined")).layout.name == (whole ? "nChw16c" : ""));
    if (blocks) CHECK(program.value(program.find("parts.dy")).layout.name == (whole ? "nChw16c" : ""));
    const Floats joined = run.get(program.find("joined"));
    const Floats dx = run.get(program.find("parts.dx")), dy = run.get(program.find("parts.dy"));
    for (std::size_t image = 0; image < 2; ++image)
      for (std::size_t channel = 0; channel < static_cast<std::size_t>(left + right); ++channel) {
        const bool first = channel < static_cast<std::size_t>(left);
        const std::size_t own = first ? channel : channel - static_cast<std::size_t>(left);
        const std::size_t channels = static_cast<std::size_t>(first ? left : right);
        CHECK(joined[(image * static_cast<std::size_t>(left + right) + channel) * 30 + 7] ==
              static_cast<float>(own + 1));
        CHECK((first ? dx : dy)[(image * channels + own) * 30 + 7] == static_cast<float>(own) + 1.5F);
      }
  }
}

}  // namespace
}  // namespace fleetrun::runtime::concat_test
