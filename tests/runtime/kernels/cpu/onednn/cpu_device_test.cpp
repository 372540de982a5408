#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/error/error.h"
#include "support/run_program.h"
#include "support/small_net.h"

namespace fleetrun::runtime::cpu_device_test {
namespace {

using test::Floats;

TEST_CASE("memory of the CPU is aligned to cache lines and zeroed") {
  const auto device = make_cpu_device();
  for (const std::size_t bytes : {0, 1, 64, 1000}) {
    const auto memory = device->allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory->data()) % 64 == 0);
    const auto* begin = static_cast<const char*>(memory->data());
    CHECK(std::all_of(begin, begin + bytes, [](char byte) { return byte == 0; }));
  }
}

TEST_CASE("a parameter comes back from its layout as it was put in") {
  const auto device = make_cpu_device();
  test::ProgramRun run(test::small_net(3), all_ops(), *device);
  for (const ValueId id : run.program().of_kind(ValueKind::parameter)) {
    Floats values(static_cast<std::size_t>(count_of(run.program().value(id).shape)));
    std::iota(values.begin(), values.end(), 1.0F);
    run.set(id, values);
    INFO(run.program().value(id).name << " " << run.program().value(id).layout.name);
    CHECK(run.get(id) == values);
  }
}

TEST_CASE("a step leaves the padding of parameters, velocities and gradients zero") {
  const auto device = make_cpu_device();
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.feed("image", {2, 17, 4, 4});
  const ValueId label = builder.feed("label", {2}, DType::i32);
  const ValueId y = builder.op("relu", "relu", {{"x", test::convolve(builder, "conv", image, 19, 3)}});
  const ValueId x = builder.op("fc", "fc", {{"x", y}, {"w", builder.parameter("fc.w", {3, 19 * 16}, {})}});
  const Arguments scores = {{"logits", x}, {"label", label}};
  const auto loss = builder.add({.type = "softmax_with_cross_entropy", .inputs = scores, .name = "ce"})[1];
  append_backward(builder, builder.op("loss", "mean", {{"x", loss}}));
  test::update_parameters(builder);
  test::ProgramRun run(program, all_ops(), *device);
  run.set(image, Floats(2 * 17 * 16, 0.5F));
  run.set(run.program().find("learning_rate"), Floats{0.1F});
  run.set(run.program().find("conv.w"), Floats(19 * 17 * 9, 0.25F));
  run.set(run.program().find("fc.w"), Floats(3 * 19 * 16, 0.125F));
  for (int step = 0; step < 3; ++step) run.run();
  for (const char* name : {"conv.w", "conv.w.velocity", "conv.w@GRAD", "fc.w", "fc.w@GRAD", "relu"}) {
    INFO(name);
    const ValueId id = run.program().find(name);
    CHECK(run.sum_of_memory(id) == doctest::Approx(test::sum(run.get(id))));
  }
}

TEST_CASE("a kernel of another device is refused") {
  class Elsewhere : public Device {
   public:
    std::string name() const override { return "elsewhere"; }
    std::string version() const override { return "1"; }
    const KernelTable& kernels() const override { return none_; }
    std::unique_ptr<comm::Memory> allocate(std::size_t) override { return nullptr; }
    void to_plain(const Value&, const void*, void*) override {}
    void from_plain(const Value&, const void*, void*) override {}
    void enter_thread(int) override {}

   private:
    KernelTable none_;
  };
  const auto cpu = make_cpu_device();
  const Program program = test::small_net(1);
  Elsewhere elsewhere;
  const OpView conv(find_op(all_ops(), "conv2d"), program, program.op(0));
  CHECK_THROWS_WITH_AS(cpu->kernels().at("conv2d").make(conv, elsewhere),
                       "a CPU kernel was asked for device elsewhere", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::cpu_device_test
