// bench_primitive_sum REPEATS JOB.json [KEY.PATH=VALUE ...]
//
// The limit that oneDNN's kernels set for a training step, in f32, or in bf16 with strategy.amp: the sum of every primitive that
// the job's model needs, each timed alone, warm, in the layout that it likes best.
//
// * A primitive's median time counts as often as the primitive occurs. It runs as often as that, times REPEATS: the processor
//   then has as much to do as in a step, which sets its clock.
// * A convolution takes the fastest algorithm in each direction: direct, or Winograd for 3x3 of stride 1. (What fleetrun does as
//   an inner product is a convolution here.)
// * Batch norms and pools work in the layout that the convolution before them produces, which depends on the instruction set;
//   the ReLU after a batch norm is fused into it.
// * Reorders, the loss, memory allocation, dispatch and cold caches do not count.
// * oneDNN does some problems with its reference implementation only, a plain loop that sets no limit. The sum leaves them out.
//
// Prints JSON: sum_ms; parts_ms by kind; reference_ms by kind, what the sum leaves out.
#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <omp.h>

#include "job/parse_job.h"
#include "runtime/compile/build_program.h"
#include "runtime/ops/rules/window.h"
#include "runtime/training/setup/model_facts.h"

namespace {

using namespace fleetrun;
using namespace fleetrun::runtime;
using Clock = std::chrono::steady_clock;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;
using Arguments = std::unordered_map<int, dnnl::memory>;

constexpr auto kNever = std::numeric_limits<double>::infinity();
constexpr float kEpsilon = 1e-5F;
constexpr std::string_view kReference =
    "ref ";  // before the kind of what oneDNN's reference implementation does

dnnl::memory::desc described(const Shape& shape, Tag tag, Type type) { return {shape, type, tag}; }

// Values of 0 to 511, scattered, over and over.
template <class T, class ValueOf>
void fill(T* data, std::size_t bytes, ValueOf value_of) {
  constexpr std::size_t kPeriod = 512;
  const std::size_t count = bytes / sizeof(T);
  for (std::size_t i = 0; i < std::min(kPeriod, count); ++i) data[i] = value_of(i * 7919 % kPeriod);
  for (std::size_t i = kPeriod; i < count; i += kPeriod)
    std::copy_n(data, std::min(kPeriod, count - i), data + i);
}

class Stopwatch {
 public:
  void repeat(int times) { repeats_ = times; }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};

  dnnl::memory memory(const dnnl::memory::desc& desc) const {
    dnnl::memory made(desc, engine);
    if (desc.data_type() == Type::bf16)
      fill(static_cast<std::uint16_t*>(made.get_data_handle()), desc.get_size(),
           [](std::size_t i) { return static_cast<std::uint16_t>(0x3c00 + i); });  // 0.008 to 0.03
    else
      fill(static_cast<float*>(made.get_data_handle()), desc.get_size(),
           [](std::size_t i) { return 0.01F + static_cast<float>(i) * 1e-4F; });
    return made;
  }

  double time(const std::function<void()>& run) const {
    run();
    std::vector<double> times;
    for (int i = 0; i < repeats_; ++i) {
      const auto start = Clock::now();
      run();
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + repeats_ / 2, times.end());
    return times[static_cast<std::size_t>(repeats_ / 2)];
  }

  double time(const dnnl::primitive& primitive, const Arguments& arguments) {
    return time([&] {
      primitive.execute(stream_, arguments);
      stream_.wait();
    });
  }

 private:
  int repeats_ = 1;
  dnnl::stream stream_{engine};
};

bool is_reference(const dnnl::primitive_desc_base& desc) {
  return std::string_view(desc.impl_info_str()).starts_with("ref");
}

// The times of one op and its gradients, in milliseconds by kind.
using Parts = std::map<std::string, double>;

void add(Parts& parts, const std::string& kind, double milliseconds, bool reference) {
  parts[reference ? std::string(kReference) + kind : kind] += milliseconds;
}

// One direction of a convolution: the fastest of what was tried.
struct Direction {
  double milliseconds = kNever;
  bool reference = false;

  void offer(double took, const dnnl::primitive_desc_base& desc) {
    if (took < milliseconds) *this = {took, is_reference(desc)};
  }
};

class Sum {
 public:
  Sum(const Program& program, Type type, int repeats) : program_(program), type_(type), repeats_(repeats) {}

  Parts run() {
    std::map<std::string, std::vector<const Op*>> alike;
    for (const Op& op : program_.ops)
      if (op.role == Role::forward) alike[key(op)].push_back(&op);
    Parts sum;
    for (const auto& [what, ops] : alike) {
      const auto times = static_cast<int>(ops.size());
      watch_.repeat(repeats_ * times);
      for (const auto& [kind, milliseconds] : time(*ops.front())) sum[kind] += milliseconds * times;
    }
    watch_.repeat(repeats_);
    std::size_t parameters = 0;
    for (const ValueId id : program_.of_kind(ValueKind::parameter))
      parameters += static_cast<std::size_t>(count_of(program_.value(id).shape));
    sum["momentum"] = momentum(parameters);
    return sum;
  }

 private:
  const Shape& shape(const Op& op, std::size_t input) const {
    return program_.value(op.inputs.at(input)).shape;
  }
  const Shape& result(const Op& op) const { return program_.value(op.outputs.at(0)).shape; }

  bool relu_follows(const Op& op) const {
    return std::ranges::any_of(program_.ops, [&](const Op& reader) {
      return reader.type == "relu" && reader.inputs.at(0) == op.outputs.at(0);
    });
  }

  // Ops of one key take the same time. The first convolution needs no gradient of its input.
  std::string key(const Op& op) const {
    std::string key = op.type + (relu_follows(op) ? " relu" : "");
    for (const ValueId id : op.inputs)
      if (id != kNone) key += describe(program_.value(id).shape);
    for (const auto& [name, value] : op.attributes) key += describe(value);
    return key;
  }

  Parts time(const Op& op) {
    if (op.type == "conv2d") return convolution(op);
    if (op.type == "batch_norm") return batch_norm(op);
    if (op.type == "elementwise_add") return residual(count_of(result(op)));
    if (op.type == "pool2d") return pool(op);
    if (op.type == "fc") return fc(op);
    return {};  // a relu is part of what stands before it; the loss is small
  }

  bool reads_the_batch(const Op& op) const { return program_.value(op.inputs[0]).kind == ValueKind::feed; }

  // What the calls for the three directions of a convolution have in common.
  struct Problem {
    dnnl::memory::desc source, weights, target;
    dnnl::memory::dims strides, before, after;

    dnnl::convolution_forward::primitive_desc forward(dnnl::algorithm algorithm,
                                                      const dnnl::engine& engine) const {
      return {{dnnl::prop_kind::forward_training, algorithm, source, weights, target, strides, before, after},
              engine};
    }
  };

  Problem problem(const Op& op) const {
    const OpView view(find_op(all_ops(), "conv2d"), program_, op);
    const Shape& w = shape(op, 1);
    const ops::Window window = ops::read_window(view, w[2], w[3]);
    const std::int64_t groups = view.integer("groups");
    const Shape w_view = groups == 1 ? w : Shape{groups, w[0] / groups, w[1], w[2], w[3]};
    return {.source = described(shape(op, 0), reads_the_batch(op) ? Tag::nchw : Tag::any),
            .weights = described(w_view, Tag::any),
            .target = described(result(op), Tag::any),
            .strides = {window.strides.begin(), window.strides.end()},
            .before = {window.before.begin(), window.before.end()},
            .after = {window.after.begin(), window.after.end()}};
  }

  // The layout that the convolution gives its result which `id` was made of, element by element.
  dnnl::memory::desc layout_of(ValueId id) const {
    const auto maker = std::ranges::find_if(
        program_.ops, [&](const Op& op) { return std::ranges::count(op.outputs, id) > 0; });
    if (maker == program_.ops.end() ||
        program_.value(maker->inputs.at(0)).shape.size() != program_.value(id).shape.size())
      throw std::runtime_error("no convolution makes value " + program_.value(id).name);
    if (maker->type != "conv2d") return layout_of(maker->inputs[0]);
    const dnnl::memory::desc made =
        problem(*maker).forward(dnnl::algorithm::convolution_direct, watch_.engine).dst_desc();
    if (made.dims() != program_.value(id).shape)
      throw std::runtime_error("no convolution makes a value of the shape of " + program_.value(id).name);
    return made;
  }

  Parts convolution(const Op& op) {
    Direction forward, data, gradient;
    const Shape& w = shape(op, 1);
    const bool may_be_winograd = type_ == Type::f32 && w[2] == 3 && w[3] == 3 && !reads_the_batch(op) &&
                                 problem(op).strides[0] == 1 && w[1] == shape(op, 0)[1];
    try_convolution(op, dnnl::algorithm::convolution_direct, forward, data, gradient);
    if (may_be_winograd) try {
        try_convolution(op, dnnl::algorithm::convolution_winograd, forward, data, gradient);
      } catch (const dnnl::error&) {  // not every shape has a Winograd, nor every instruction set
      }
    Parts parts;
    add(parts, "conv forward", forward.milliseconds, forward.reference);
    if (!reads_the_batch(op)) add(parts, "conv data", data.milliseconds, data.reference);
    add(parts, "conv weights", gradient.milliseconds, gradient.reference);
    return parts;
  }

  // The gradients take source and target as they are in the forward pass.
  void try_convolution(const Op& op, dnnl::algorithm algorithm, Direction& forward, Direction& data,
                       Direction& gradient) {
    using namespace dnnl;
    Problem p = problem(op);
    const convolution_forward::primitive_desc made = p.forward(algorithm, watch_.engine);
    p.source = made.src_desc(), p.target = made.dst_desc();
    const memory s = watch_.memory(p.source), t = watch_.memory(p.target),
                 k = watch_.memory(made.weights_desc());
    forward.offer(
        watch_.time(convolution_forward(made), {{DNNL_ARG_SRC, s}, {DNNL_ARG_WEIGHTS, k}, {DNNL_ARG_DST, t}}),
        made);
    if (!reads_the_batch(op)) {
      const convolution_backward_data::primitive_desc back(
          {algorithm, p.source, p.weights, p.target, p.strides, p.before, p.after}, watch_.engine, made);
      data.offer(watch_.time(convolution_backward_data(back),
                             {{DNNL_ARG_DIFF_DST, t},
                              {DNNL_ARG_WEIGHTS, watch_.memory(back.weights_desc())},
                              {DNNL_ARG_DIFF_SRC, s}}),
                 back);
    }
    const memory::desc gradients(p.weights.dims(), Type::f32, Tag::any);
    const convolution_backward_weights::primitive_desc back(
        {algorithm, p.source, gradients, p.target, p.strides, p.before, p.after}, watch_.engine, made);
    gradient.offer(watch_.time(convolution_backward_weights(back),
                               {{DNNL_ARG_SRC, s},
                                {DNNL_ARG_DIFF_DST, t},
                                {DNNL_ARG_DIFF_WEIGHTS, watch_.memory(back.diff_weights_desc())}}),
                   back);
  }

  Parts batch_norm(const Op& op) {
    using namespace dnnl;
    const bool relu = relu_follows(op);
    const auto flags = normalization_flags::use_scale | normalization_flags::use_shift |
                       (relu ? normalization_flags::fuse_norm_relu : normalization_flags::none);
    const memory::desc image = layout_of(op.inputs[0]), channels({shape(op, 0)[1]}, Type::f32, Tag::x);
    const batch_normalization_forward::primitive_desc forward(
        {prop_kind::forward_training, image, kEpsilon, flags}, watch_.engine);
    Arguments arguments = {
        {DNNL_ARG_SRC, watch_.memory(image)},      {DNNL_ARG_DST, watch_.memory(image)},
        {DNNL_ARG_MEAN, watch_.memory(channels)},  {DNNL_ARG_VARIANCE, watch_.memory(channels)},
        {DNNL_ARG_SCALE, watch_.memory(channels)}, {DNNL_ARG_SHIFT, watch_.memory(channels)}};
    if (relu) arguments[DNNL_ARG_WORKSPACE] = memory(forward.workspace_desc(), watch_.engine);
    Parts parts;
    add(parts, "batch_norm forward", watch_.time(batch_normalization_forward(forward), arguments),
        is_reference(forward));
    const batch_normalization_backward::primitive_desc backward(
        {prop_kind::backward, image, image, kEpsilon, flags}, watch_.engine, forward);
    arguments[DNNL_ARG_DIFF_DST] = arguments[DNNL_ARG_DST];
    arguments[DNNL_ARG_DIFF_SRC] = watch_.memory(image);
    arguments[DNNL_ARG_DIFF_SCALE] = watch_.memory(channels);
    arguments[DNNL_ARG_DIFF_SHIFT] = watch_.memory(channels);
    add(parts, "batch_norm backward", watch_.time(batch_normalization_backward(backward), arguments),
        is_reference(backward));
    return parts;
  }

  // By hand, one pass each: add with its relu, the relu's gradient, and the sum of both branches' gradients.
  Parts residual(std::int64_t count) {
    const auto n = static_cast<std::size_t>(count) / (type_ == Type::bf16 ? 2 : 1);  // as many bytes
    std::vector<float> a(n, 1.0F), b(n, 2.0F), c(n);
    float *x = a.data(), *y = b.data(), *z = c.data();
    double time = watch_.time([&] {
#pragma omp parallel for simd
      for (std::size_t i = 0; i < n; ++i) z[i] = std::max(x[i] + y[i], 0.0F);
    });
    time += watch_.time([&] {
#pragma omp parallel for simd
      for (std::size_t i = 0; i < n; ++i) y[i] = z[i] > 0 ? x[i] : 0;
    });
    time += watch_.time([&] {
#pragma omp parallel for simd
      for (std::size_t i = 0; i < n; ++i) y[i] += x[i];
    });
    return {{"add and relu", time}};
  }

  Parts pool(const Op& op) {
    using namespace dnnl;
    const OpView view(find_op(all_ops(), "pool2d"), program_, op);
    const Shape kernel = std::get<Shape>(op.attributes.at("kernel"));
    const ops::Window window = ops::read_window(view, kernel[0], kernel[1]);
    const memory::dims strides(window.strides.begin(), window.strides.end()),
        before(window.before.begin(), window.before.end()), after(window.after.begin(), window.after.end());
    const bool most = std::get<std::string>(op.attributes.at("kind")) == "max";
    const auto kind = most ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding;
    const memory::desc source = layout_of(op.inputs[0]);
    const pooling_forward::primitive_desc forward(
        {prop_kind::forward_training, kind, source, described(result(op), Tag::any), strides, kernel, before,
         after},
        watch_.engine);
    const memory::desc target = forward.dst_desc();
    const memory s = watch_.memory(source), t = watch_.memory(target);
    Arguments arguments = {
        {DNNL_ARG_SRC, s}, {DNNL_ARG_DST, t}, {DNNL_ARG_DIFF_DST, t}, {DNNL_ARG_DIFF_SRC, s}};
    if (most) arguments[DNNL_ARG_WORKSPACE] = memory(forward.workspace_desc(), watch_.engine);
    const pooling_backward::primitive_desc backward({kind, source, target, strides, kernel, before, after},
                                                    watch_.engine, forward);
    Parts parts;
    add(parts, "pool", watch_.time(pooling_forward(forward), arguments), is_reference(forward));
    add(parts, "pool", watch_.time(pooling_backward(backward), arguments), is_reference(backward));
    return parts;
  }

  Parts fc(const Op& op) {
    using namespace dnnl;
    const Shape& w = shape(op, 1);
    const std::int64_t rows = shape(op, 0)[0];
    const memory::desc source = described({rows, w[1]}, Tag::any), weights = described(w, Tag::any),
                       target = described({rows, w[0]}, Tag::any);
    const inner_product_forward::primitive_desc forward(
        {prop_kind::forward_training, source, weights, target}, watch_.engine);
    const memory s = watch_.memory(forward.src_desc()), t = watch_.memory(forward.dst_desc());
    Parts parts;
    add(parts, "fc",
        watch_.time(inner_product_forward(forward),
                    {{DNNL_ARG_SRC, s},
                     {DNNL_ARG_WEIGHTS, watch_.memory(forward.weights_desc())},
                     {DNNL_ARG_DST, t}}),
        is_reference(forward));
    const inner_product_backward_data::primitive_desc data({forward.src_desc(), weights, forward.dst_desc()},
                                                           watch_.engine, forward);
    add(parts, "fc",
        watch_.time(inner_product_backward_data(data),
                    {{DNNL_ARG_DIFF_DST, t},
                     {DNNL_ARG_WEIGHTS, watch_.memory(data.weights_desc())},
                     {DNNL_ARG_DIFF_SRC, s}}),
        is_reference(data));
    const inner_product_backward_weights::primitive_desc gradient(
        {forward.src_desc(), weights, forward.dst_desc()}, watch_.engine, forward);
    add(parts, "fc",
        watch_.time(inner_product_backward_weights(gradient),
                    {{DNNL_ARG_SRC, s},
                     {DNNL_ARG_DIFF_DST, t},
                     {DNNL_ARG_DIFF_WEIGHTS, watch_.memory(gradient.diff_weights_desc())}}),
        is_reference(gradient));
    return parts;
  }

  double momentum(std::size_t n) {
    std::vector<float> weights(n), gradients(n, 1e-3F), velocities(n);
    float *w = weights.data(), *g = gradients.data(), *v = velocities.data();
    return watch_.time([&] {
#pragma omp parallel for simd
      for (std::size_t i = 0; i < n; ++i) {
        v[i] = 0.9F * v[i] + g[i];
        w[i] -= 0.01F * v[i];
      }
    });
  }

  dnnl::memory::desc described(const Shape& shape, Tag tag) const { return ::described(shape, tag, type_); }

  const Program& program_;
  const Type type_;
  const int repeats_;
  Stopwatch watch_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: bench_primitive_sum REPEATS JOB.json [KEY.PATH=VALUE ...]\n";
    return 2;
  }
  try {
    job::JobSpec job = job::parse_job_file(arguments[2], {arguments + 3, arguments + count}).spec;
    omp_set_num_threads(job.train.threads.value_or(1));
    const Type type = job.strategy.amp ? Type::bf16 : Type::f32;
    job.strategy.amp = job.strategy.recompute = false;
    job.strategy.build_strategy.fuse_bn_add_act_ops = job.strategy.build_strategy.fuse_bn_act_ops = false;
    const Program program = build_training_program(job, resolve_model_facts(job), all_ops(), {});
    double sum = 0;
    std::vector<std::string> parts, reference;
    for (const auto& [kind, milliseconds] : Sum(program, type, std::stoi(arguments[1])).run()) {
      const bool counts = !kind.starts_with(kReference);
      if (counts) sum += milliseconds;
      (counts ? parts : reference)
          .push_back(
              fmt::format("\"{}\": {:.3f}", counts ? kind : kind.substr(kReference.size()), milliseconds));
    }
    fmt::print("{{\"sum_ms\": {:.3f}, \"parts_ms\": {{{}}}, \"reference_ms\": {{{}}}}}\n", sum,
               fmt::join(parts, ", "), fmt::join(reference, ", "));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_primitive_sum: error: " << error.what() << '\n';
    return 1;
  }
}
