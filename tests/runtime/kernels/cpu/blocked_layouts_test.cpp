// Every kernel that walks over rows of channels, in every layout that oneDNN may choose on some processor: blocks of 8 channels
// on one with AVX2, of 16 with AVX-512, of 32 and 64 with matrix units.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>

#include "base/number/half.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/op_def.h"
#include "runtime/kernels/cpu/loops/channel_rows.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/onednn/descriptors.h"
#include "runtime/kernels/device.h"
#include "runtime/tensor/philox.h"
#include "support/vector_levels.h"

namespace fleetrun::runtime {
namespace {

constexpr Shape::value_type kImages = 2, kRows = 9, kColumns = 11;

// The layout of a 4-D value with `inner` channels side by side.
Layout blocked_layout(const Value& value, std::int64_t inner) {
  cpu::Descriptor made;
  std::memset(&made, 0, sizeof made);
  made.ndims = 4;
  made.data_type = value.dtype == DType::bf16 ? dnnl_bf16 : dnnl_f32;
  made.format_kind = dnnl_blocked;
  const std::int64_t blocks = (value.shape[1] + inner - 1) / inner, pixels = value.shape[2] * value.shape[3];
  for (std::size_t i = 0; i < 4; ++i) made.dims[i] = made.padded_dims[i] = value.shape[i];
  made.padded_dims[1] = blocks * inner;
  auto& blocking = made.format_desc.blocking;
  blocking.inner_nblks = 1;
  blocking.inner_blks[0] = inner;
  blocking.inner_idxs[0] = 1;
  blocking.strides[3] = inner;
  blocking.strides[2] = inner * value.shape[3];
  blocking.strides[1] = inner * pixels;
  blocking.strides[0] = inner * pixels * blocks;
  return cpu::layout_of(made, "nchw");
}

// An op by itself on images of `channels` channels, all of them of one type and in one layout.
class OneOp {
 public:
  struct Case {
    std::string type;
    Attributes attributes;
  };

  // `inner`: channels of a block; 1 for a plain image.
  OneOp(const Case& what, DType dtype, std::int64_t channels, std::int64_t inner, Device& device)
      : inner_(inner) {
    build(what, dtype, channels);
    for (Value& value : program_.values)
      if (inner > 1 && value.shape.size() == 4) value.layout = blocked_layout(value, inner);
    const Op& op = program_.ops.front();
    kernel_ =
        device.kernels().at(what.type).make(OpView(find_op(all_ops(), what.type), program_, op), device);
    scratch_ = device.allocate(kernel_->scratch_bytes() + 1);
  }

  // Each output, element by element as in a plain tensor.
  std::map<std::string, std::vector<float>> run() {
    std::vector<std::vector<std::byte>> memories;
    std::vector<void*> addresses;
    for (const Value& value : program_.values) memories.emplace_back(value.bytes());
    for (auto& memory : memories) addresses.push_back(memory.data());
    const Op& op = program_.ops.front();
    for (const ValueId id : op.inputs)
      if (id != kNone) fill(id, addresses[static_cast<std::size_t>(id)]);
    RunContext context;
    context.data = addresses.data();
    context.scratch = scratch_->data();
    kernel_->run(context);
    std::map<std::string, std::vector<float>> found;
    for (const ValueId id : op.outputs) {
      const Value& value = program_.value(id);
      std::vector<float>& elements = found[value.name];
      for (std::int64_t i = 0; i < count_of(value.shape); ++i)
        elements.push_back(read(value, addresses[static_cast<std::size_t>(id)], place(value, i)));
    }
    return found;
  }

 private:
  void build(const Case& what, DType dtype, std::int64_t channels) {
    Builder builder(program_, all_ops());
    const Shape image = {kImages, channels, kRows, kColumns};
    Arguments arguments;
    const bool pools = what.type == "pool2d_grad";
    for (const std::string& argument : find_op(all_ops(), what.type).inputs) {
      const std::string name = argument.back() == '?' ? argument.substr(0, argument.size() - 1) : argument;
      const bool smaller = pools && name != "x";
      const bool is_image = name == "x" || name == "y" || name == "z" || name == "dy" || name == "dy_too";
      if (name == "mean" || name == "variance")
        arguments.emplace_back(name, builder.state(name, {channels}, {}, kNone));
      else if (is_image)
        arguments.emplace_back(name,
                               builder.feed(name, smaller ? Shape{kImages, channels, 5, 6} : image, dtype));
      else
        arguments.emplace_back(
            name, builder.feed(name, {name == "sums" ? 2 * channels + 1 : channels}, DType::f32));
    }
    builder.add({.type = what.type, .inputs = arguments, .attributes = what.attributes, .name = "made"});
  }

  // Where an element lies that is the i-th of a plain tensor.
  std::size_t place(const Value& value, std::int64_t i) const {
    if (value.layout.plain()) return static_cast<std::size_t>(i);
    const std::int64_t pixels = value.shape[2] * value.shape[3],
                       blocks = (value.shape[1] + inner_ - 1) / inner_;
    const std::int64_t pixel = i % pixels, channel = i / pixels % value.shape[1],
                       n = i / pixels / value.shape[1];
    return static_cast<std::size_t>(((n * blocks + channel / inner_) * pixels + pixel) * inner_ +
                                    channel % inner_);
  }

  static float read(const Value& value, const void* memory, std::size_t at) {
    if (value.dtype == DType::bf16) return bf16_to_f32(static_cast<const std::uint16_t*>(memory)[at]);
    return static_cast<const float*>(memory)[at];
  }

  // Images from -1 to 1 in steps that bf16 holds, so that maxima meet their equals; what is of each channel from 0.5 to 1.5.
  void fill(ValueId id, void* memory) const {
    const Value& value = program_.value(id);
    for (std::int64_t i = 0; i < count_of(value.shape); ++i) {
      const float random =
          unit_float(philox(5, static_cast<std::uint64_t>(id), static_cast<std::uint64_t>(i))[0]);
      const bool image = value.shape.size() == 4;
      const float number =
          image ? static_cast<float>(static_cast<int>(random * 128) - 64) / 64 : random + 0.5F;
      if (value.dtype == DType::bf16)
        static_cast<std::uint16_t*>(memory)[place(value, i)] = f32_to_bf16(number);
      else
        static_cast<float*>(memory)[place(value, i)] = number;
    }
  }

  std::int64_t inner_;
  Program program_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<comm::Memory> scratch_;
};

Attributes pooling(const char* kind) {
  return {{"kind", std::string(kind)},
          {"kernel", Shape{3, 3}},
          {"strides", Shape{2, 2}},
          {"paddings", Shape{1, 1}},
          {"exclusive", true}};
}

std::vector<OneOp::Case> pools() {
  return {{"pool2d", pooling("max")},
          {"pool2d", pooling("average")},
          {"pool2d_grad", pooling("max")},
          {"pool2d_grad", pooling("average")}};
}

std::vector<OneOp::Case> batch_norms() {
  const Attributes forward = {{"epsilon", 1e-5}, {"momentum", 0.9}, {"training", true}};
  const Attributes backward = {{"epsilon", 1e-5}};
  return {{"batch_norm", forward},
          {"batch_norm_act", forward},
          {"batch_norm_add_act", forward},
          {"batch_norm_grad", backward},
          {"batch_norm_act_grad", backward},
          {"batch_norm_add_act_grad", backward},
          {"sync_batch_norm_sums", {}},
          {"sync_batch_norm", forward},
          {"sync_batch_norm_grad_sums", backward},
          {"sync_batch_norm_grad", backward}};
}

constexpr std::int64_t kInner[] = {8, 16, 32, 64};
constexpr DType kTypes[] = {DType::f32, DType::bf16};

// body(case, type, channels, channels of a block); the last block has channels that only fill it up.
template <typename Body>
void each_blocked(const std::vector<OneOp::Case>& cases, Body&& body) {
  for (const OneOp::Case& what : cases)
    for (const DType dtype : kTypes)
      for (const std::int64_t inner : kInner) {
        INFO(what.type << ", " << describe(dtype) << ", blocks of " << inner);
        body(what, dtype, 2 * inner - 3, inner);
      }
}

TEST_CASE("no loop over blocks of channels meets a remainder, at any level of vector instructions") {
  const auto device = make_cpu_device();
  std::vector<OneOp::Case> cases = batch_norms();
  for (const OneOp::Case& pool : pools()) cases.push_back(pool);
  each_blocked(cases, [&](const OneOp::Case& what, DType dtype, std::int64_t channels, std::int64_t inner) {
    OneOp op(what, dtype, channels, inner, *device);
    fleetrun::test::at_every_level([&] {
      const std::int64_t before = cpu::remainders_met();
      op.run();
      CHECK(cpu::remainders_met() == before);
    });
  });
}

TEST_CASE("a number of channels that fills no register is counted as a remainder, at every level") {
  const auto device = make_cpu_device();
  fleetrun::test::at_every_level([&] {
    for (const DType dtype : kTypes)
      for (const OneOp::Case& what : {batch_norms().front(), batch_norms()[3], pools()[0], pools()[2]}) {
        INFO(what.type);
        OneOp op(what, dtype, 5, 5, *device);
        const std::int64_t before = cpu::remainders_met();
        op.run();
        CHECK(cpu::remainders_met() > before);
      }
  });
}

TEST_CASE("kernels give the same bits at every level of vector instructions, however images lie") {
  const auto device = make_cpu_device();
  std::vector<OneOp::Case> cases = batch_norms();
  for (const OneOp::Case& pool : pools()) cases.push_back(pool);
  each_blocked(cases, [&](const OneOp::Case& what, DType dtype, std::int64_t channels, std::int64_t inner) {
    OneOp op(what, dtype, channels, inner, *device);
    std::map<std::string, std::vector<float>> first;
    fleetrun::test::at_every_level([&] {
      const auto found = op.run();
      if (first.empty()) first = found;
      CHECK((found == first));
    });
  });
}

TEST_CASE("pooling has the same bits in blocks of channels as in a plain image") {
  const auto device = make_cpu_device();
  each_blocked(pools(), [&](const OneOp::Case& what, DType dtype, std::int64_t channels, std::int64_t inner) {
    const auto plain = OneOp(what, dtype, channels, 1, *device).run();
    fleetrun::test::at_every_level(
        [&] { CHECK((OneOp(what, dtype, channels, inner, *device).run() == plain)); });
  });
}

TEST_CASE("batch norms make of blocks of channels what they make of a plain image") {
  const auto device = make_cpu_device();
  each_blocked(batch_norms(), [&](const OneOp::Case& what, DType dtype, std::int64_t channels,
                                  std::int64_t inner) {
    const double rounding = dtype == DType::bf16 ? 1.0 / 128 : 1e-4;  // statistics differ in their last bits
    const auto plain = OneOp(what, dtype, channels, 1, *device).run();
    for (const auto& [name, found] : OneOp(what, dtype, channels, inner, *device).run()) {
      INFO(name);
      const std::vector<float>& wanted = plain.at(name);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(rounding).scale(1));
    }
  });
}

float one_more(float x) { return x + 1; }
float twice(float x) { return 2 * x; }

TEST_CASE("an elementwise op that makes something else of 0 keeps out of the padding of a layout") {
  const auto device = make_cpu_device();
  for (const std::int64_t channels : {16, 20}) {  // 20: the last block of channels is padded
    CAPTURE(channels);
    Program program;
    Builder builder(program, all_ops());
    const ValueId x = builder.feed("x", {kImages, channels, kRows, kColumns});
    builder.op("y", "relu", {{"x", x}});  // an op of one input: the kernels below could be its own
    program.values[static_cast<std::size_t>(x)].layout = blocked_layout(program.value(x), 8);
    const LayoutQuery query = {OpView(find_op(all_ops(), "relu"), program, program.ops.front()), {false}};
    CHECK(cpu::choose_for_elements<one_more>(query, *device).outputs[0].plain() == (channels == 20));
    CHECK_FALSE(cpu::choose_for_elements<twice>(query, *device).outputs[0].plain());
  }
}

}  // namespace
}  // namespace fleetrun::runtime
