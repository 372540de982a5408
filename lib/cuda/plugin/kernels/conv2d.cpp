// Convolutions of cuDNN on plain images (NCHW) or such with their channels last (NHWC). An engine is looked for once per distinct
// problem: timed with strategy.cudnn_exhaustive_search, else the one that cuDNN expects to be the fastest; only of those that
// give the same bits every time, within strategy.conv_workspace_size_limit. cuDNN pads both sides alike: for other
// paddings the image is put into a frame of zeros first.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/error/error.h"
#include "cuda/plugin/convolution_plan.h"
#include "cuda/plugin/simple_kernel.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

std::size_t bytes_of(const std::array<std::int64_t, 4>& sizes, std::size_t of_element) {
  std::size_t bytes = of_element;
  for (const std::int64_t size : sizes) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

std::array<std::int64_t, 4> sizes_of(const OpView& op, const Value& value) {
  narrow(op, runtime::count_of(value.shape));
  std::array<std::int64_t, 4> sizes{};
  std::copy_n(value.shape.begin(), sizes.size(), sizes.begin());
  return sizes;
}

// The values of a convolution; which of them the op reads and which one it makes depends on the direction.
struct Operands {
  ValueId x, w, y;
  ValueId bias;  // of the forward direction, or its gradient; may be absent
};

Operands operands_of(const OpView& op, Direction direction) {
  switch (direction) {
    case Direction::forward:
      return {op.input_id("x"), op.input_id("w"), op.output_id("y"), op.input_id("b")};
    case Direction::grad_input:
      return {op.output_id("dx"), op.input_id("w"), op.input_id("dy"), runtime::kNone};
    case Direction::grad_weights:
      break;
  }
  return {op.input_id("x"), op.output_id("dw"), op.input_id("dy"), op.output_id("db")};
}

// Memory for a search: values of the problem's sizes and a workspace.
struct Trial {
  std::unique_ptr<comm::Memory> x, w, y, workspace;
};

template <Direction kDirection>
class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(const OpView& op, Device& device)
      : device_(as_cuda(device)),
        doing_("running " + op.def().name),
        ids_(operands_of(op, kDirection)),
        made_(channels_of(op.program().value(ids_.y))) {
    describe_problem(op);
    choose(op);
  }

  std::size_t scratch_bytes() const override {
    return with_room_to_align(framed_bytes() + algorithm_.workspace);
  }
  std::string describe() const override {
    return fmt::format("cuDNN {} {}, {} bytes of workspace", problem_.channels_last ? "NHWC" : "NCHW",
                       algorithm_.plan->name(), algorithm_.workspace);
  }

  void run(const RunContext& context) override {
    const std::lock_guard lock(device_.libraries());
    const cudaStream_t stream = device_.stream(context.stream);
    std::byte* const scratch = align(context.scratch);
    void* image = context.data[ids_.x];
    void *const w = context.data[ids_.w], *const y = context.data[ids_.y];
    void* const x = framed_ ? scratch : image;
    if (framed_ && kDirection != Direction::grad_input) put_into_frame(element_, image, x, frame_, stream);
    algorithm_.plan->run(device_.cudnn(), places_, x, w, y, scratch + framed_bytes());
    if (framed_ && kDirection == Direction::grad_input) take_from_frame(element_, x, image, frame_, stream);
    if (ids_.bias != runtime::kNone) {
      void* const bias = context.data[ids_.bias];
      if (kDirection == Direction::forward)
        add_to_channels(problem_.type, y, bias, made_, stream);
      else
        sum_of_channels(problem_.type, y, bias, made_, stream);
    }
    check(cudaGetLastError(), doing_);
  }

 private:
  void describe_problem(const OpView& op) {
    const Value& image = op.program().value(ids_.x);
    const Value& weight = op.program().value(ids_.w);
    const Value& convolved = op.program().value(ids_.y);
    const runtime::ops::Window window = runtime::ops::read_window(op, weight.shape[2], weight.shape[3]);
    const bool last = is_channels_last(image.layout);
    element_ = static_cast<int>(size_of(image.dtype));
    framed_ = window.before != window.after;
    problem_ = {.direction = kDirection,
                .type = number_of(op, image),
                .tf32 = device_.options().tf32,
                .channels_last = last,
                .x = sizes_of(op, image),
                .w = sizes_of(op, weight),
                .y = sizes_of(op, convolved)};
    frame_.planes = last ? image.shape[0] : image.shape[0] * image.shape[1];
    frame_.lanes = last ? narrow(op, image.shape[1]) : 1;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      problem_.strides[axis] = window.strides[axis];
      problem_.dilations[axis] = window.dilations[axis];
      problem_.padding[axis] = framed_ ? 0 : window.before[axis];
      frame_.in[axis] = narrow(op, image.shape[axis + 2]);
      frame_.before[axis] = narrow(op, window.before[axis]);
      if (framed_) problem_.x[axis + 2] += window.before[axis] + window.after[axis];
      frame_.out[axis] = narrow(op, problem_.x[axis + 2]);
    }
  }

  // The image with its frame lies first in the scratch memory.
  std::size_t framed_bytes() const {
    return framed_ ? rounded(bytes_of(problem_.x, static_cast<std::size_t>(element_))) : 0;
  }

  void choose(const OpView& op) {
    const runtime::PluginOptions& options = device_.options();
    algorithm_ = device_.algorithms().get(problem_.describe(), [&] {
      const std::vector<Candidate> candidates = options.exhaustive_search ? timed() : expected();
      if (const auto found = first_within(candidates, options.workspace_limit)) return *found;
      const auto least = least_workspace(candidates);
      if (!least) op.fail(fmt::format("cuDNN has no deterministic engine for {}", problem_.describe()));
      op.fail(fmt::format(
          "cuDNN wants {} bytes of workspace or more, strategy.conv_workspace_size_limit allows {}", *least,
          options.workspace_limit));
    });
  }

  static std::vector<Candidate> candidates_of(
      const std::vector<std::shared_ptr<const ConvolutionPlan>>& plans) {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < plans.size(); ++i)
      candidates.push_back({{static_cast<int>(i), plans[i]->workspace_bytes(), plans[i]}, true});
    return candidates;
  }

  std::vector<Candidate> expected() {
    const std::lock_guard lock(device_.libraries());
    return candidates_of(ConvolutionPlan::all(device_.cudnn(), problem_, device_.options().workspace_limit));
  }

  // The fastest first; those that want too much workspace come last, untimed.
  std::vector<Candidate> timed() {
    const std::lock_guard lock(device_.libraries());
    std::vector<Candidate> candidates = candidates_of(ConvolutionPlan::all(device_.cudnn(), problem_));
    const auto element = static_cast<std::size_t>(element_);
    const std::size_t limit = device_.options().workspace_limit;
    std::size_t most = 0;
    for (const Candidate& each : candidates)
      if (each.algorithm.workspace <= limit) most = std::max(most, each.algorithm.workspace);
    const Trial trial = {device_.allocate(bytes_of(problem_.x, element)),
                         device_.allocate(bytes_of(problem_.w, element)),
                         device_.allocate(bytes_of(problem_.y, element)), device_.allocate(most)};
    std::vector<std::pair<float, Candidate>> by_time;
    for (Candidate& each : candidates) by_time.emplace_back(time_of(each, trial, limit), std::move(each));
    std::stable_sort(by_time.begin(), by_time.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    for (std::size_t i = 0; i < by_time.size(); ++i) candidates[i] = std::move(by_time[i].second);
    return candidates;
  }

  // An engine that fails is not usable.
  float time_of(Candidate& candidate, const Trial& trial, std::size_t limit) {
    constexpr float kNever = std::numeric_limits<float>::infinity();
    if (candidate.algorithm.workspace > limit) return kNever;
    ConvolutionPlan::Places places;
    try {
      return device_.time_of([&] {
        candidate.algorithm.plan->run(device_.cudnn(), places, trial.x->data(), trial.w->data(),
                                      trial.y->data(), trial.workspace->data());
      });
    } catch (const Error&) {
      candidate.usable = false;
      return kNever;
    }
  }

  CudaDevice& device_;
  std::string doing_;
  Operands ids_;
  Channels made_;  // of y
  ConvolutionProblem problem_;
  int element_;  // bytes
  bool framed_;
  Frame frame_;  // where framed
  Algorithm algorithm_;
  ConvolutionPlan::Places places_;
};

template <Direction kDirection>
std::unique_ptr<Kernel> make(const OpView& op, Device& device) {
  return std::make_unique<ConvolutionKernel<kDirection>>(op, device);
}

template <Direction kDirection>
KernelDef kernel() {
  return {.choose_layouts = as_the_job_says, .make = make<kDirection>};
}

}  // namespace

KernelDef conv2d_kernel() { return kernel<Direction::forward>(); }
KernelDef conv2d_grad_input_kernel() { return kernel<Direction::grad_input>(); }
KernelDef conv2d_grad_weights_kernel() { return kernel<Direction::grad_weights>(); }

}  // namespace fleetrun::cuda
