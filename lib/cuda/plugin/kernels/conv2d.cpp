// Convolutions of cuDNN on plain images (NCHW) or such with their channels last (NHWC). An engine is looked for once per distinct
// problem: timed with strategy.cudnn_exhaustive_search, else the one that cuDNN expects to be the fastest; only of those that
// give the same bits every time, within strategy.conv_workspace_size_limit. cuDNN pads both sides alike: for other
// paddings the image is put into a frame of zeros first. Matrix units want whole groups of channels: images with fewer,
// and their filters, get channels of zeros, where that pays.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
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

// What a convolution reads and writes.
struct Arrays {
  void *image, *w, *y;
  std::byte* scratch;
};

std::size_t bytes_of(std::int64_t planes, int lanes, const int (&size)[2], int element) {
  return static_cast<std::size_t>(planes) * static_cast<std::size_t>(lanes) *
         static_cast<std::size_t>(size[0]) * static_cast<std::size_t>(size[1]) *
         static_cast<std::size_t>(element);
}

// A tensor, and the copy of it that cuDNN gets instead where it needs a frame or more channels.
struct Copied {
  Frame frame{};
  int element = 0;  // bytes

  bool is_needed() const {
    return frame.lanes_in != frame.lanes_out || frame.in[0] != frame.out[0] || frame.in[1] != frame.out[1];
  }
  std::size_t bytes() const {  // of the copy
    return is_needed() ? rounded(bytes_of(frame.planes, frame.lanes_out, frame.out, element)) : 0;
  }
  std::size_t original_bytes() const { return bytes_of(frame.planes, frame.lanes_in, frame.in, element); }
  bool fits() const {  // libraries and kernels count elements in 32 bits
    return bytes() / static_cast<std::size_t>(element) <= std::numeric_limits<int>::max();
  }
  void copy(const void* original, void* copied, cudaStream_t stream) const {
    if (is_needed()) put_into_frame(element, original, copied, frame, stream);
  }
  void copy_back(const void* copied, void* original, cudaStream_t stream) const {
    if (is_needed()) take_from_frame(element, copied, original, frame, stream);
  }
};

// Image and filters with so many channels. The copies lie first in the scratch memory.
struct Padding {
  std::int64_t channels;  // of the filters
  Copied image, filters;

  std::size_t bytes() const { return image.bytes() + filters.bytes(); }
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

  std::size_t scratch_bytes() const override { return with_room_to_align(bytes_for(algorithm_)); }
  std::string describe() const override {
    std::string padded;
    if (algorithm_.channels != problem_.w[1]) padded = fmt::format(", {} channels", algorithm_.channels);
    return fmt::format("cuDNN {} {}{}, {} bytes of workspace", problem_.channels_last ? "NHWC" : "NCHW",
                       algorithm_.plan->name(), padded, algorithm_.workspace);
  }

  void run(const RunContext& context) override {
    const std::lock_guard lock(device_.libraries());
    const cudaStream_t stream = device_.stream(context.stream);
    void* const y = context.data[ids_.y];
    convolve(algorithm_, told_, {context.data[ids_.x], context.data[ids_.w], y, align(context.scratch)},
             stream);
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
    const bool framed = window.before != window.after;
    problem_ = {.direction = kDirection,
                .type = number_of(op, image),
                .tf32 = device_.options().tf32,
                .deterministic = device_.options().deterministic,
                .channels_last = last,
                .x = sizes_of(op, image),
                .w = sizes_of(op, weight),
                .y = sizes_of(op, convolved)};
    image_.element = filters_.element = element_;
    Frame &around = image_.frame, &filters = filters_.frame;
    around.planes = last ? image.shape[0] : image.shape[0] * image.shape[1];
    around.lanes_in = around.lanes_out = last ? narrow(op, image.shape[1]) : 1;
    filters.planes = weight.shape[0];
    filters.lanes_in = filters.lanes_out = narrow(op, weight.shape[1]);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      problem_.strides[axis] = window.strides[axis];
      problem_.dilations[axis] = window.dilations[axis];
      problem_.padding[axis] = framed ? 0 : window.before[axis];
      if (framed) problem_.x[axis + 2] += window.before[axis] + window.after[axis];
      around.in[axis] = narrow(op, image.shape[axis + 2]);
      around.out[axis] = narrow(op, problem_.x[axis + 2]);
      around.before[axis] = framed ? narrow(op, window.before[axis]) : 0;
      filters.in[axis] = filters.out[axis] = narrow(op, weight.shape[axis + 2]);
    }
    narrow(op, problem_.x[0] * problem_.x[1] * problem_.x[2] * problem_.x[3]);  // with its frame
  }

  Padding padding_to(std::int64_t channels) const {
    Padding padding = {channels, image_, filters_};
    const auto more = static_cast<int>(channels - problem_.w[1]);
    if (more != 0) padding.image.frame.lanes_out += more, padding.filters.frame.lanes_out += more;
    return padding;
  }

  // To groups of channels that matrix units take at once: 16 bytes, or 8 of narrow types. The least comes first.
  std::vector<Padding> paddings() const {
    constexpr int kMostBytes = 16;
    std::vector<Padding> all;
    const std::int64_t channels = problem_.w[1];
    const bool one_group = problem_.x[1] == channels;
    const bool matrix_units = problem_.channels_last && (problem_.type != Number::f32 || problem_.tf32);
    if (!one_group || !matrix_units) return all;
    for (const int group : {4, 8}) {
      const std::int64_t padded = (channels + group - 1) / group * group;
      if (group * element_ > kMostBytes || padded == channels) continue;
      if (!all.empty() && all.back().channels == padded) continue;
      const Padding padding = padding_to(padded);
      const bool fits = padding.image.fits() && padding.filters.fits();
      if (fits && padding.bytes() <= device_.options().workspace_limit) all.push_back(padding);
    }
    return all;
  }

  std::size_t bytes_for(const Algorithm& algorithm) const {
    return padding_to(algorithm.channels).bytes() + algorithm.plan->workspace_bytes();
  }

  void convolve(const Algorithm& algorithm, ConvolutionPlan::Places& told, const Arrays& at,
                cudaStream_t stream) {
    const auto [channels, image, filters] = padding_to(algorithm.channels);
    void* const x = image.is_needed() ? at.scratch : at.image;
    void* const w = filters.is_needed() ? at.scratch + image.bytes() : at.w;
    if (kDirection != Direction::grad_input) image.copy(at.image, x, stream);
    if (kDirection != Direction::grad_weights) filters.copy(at.w, w, stream);
    algorithm.plan->run(device_.cudnn(), told, {x, w, at.y, at.scratch + image.bytes() + filters.bytes()});
    if (kDirection == Direction::grad_input) image.copy_back(x, at.image, stream);
    if (kDirection == Direction::grad_weights) filters.copy_back(w, at.w, stream);
  }

  void choose(const OpView& op) {
    const runtime::PluginOptions& options = device_.options();
    const auto search = [&] {
      const std::vector<Candidate> candidates = options.exhaustive_search ? timed() : expected();
      if (const auto found = first_within(candidates, options.workspace_limit)) return *found;
      const auto least = least_workspace(candidates);
      if (!least) op.fail(fmt::format("cuDNN has no deterministic engine for {}", problem_.describe()));
      op.fail(fmt::format(
          "cuDNN wants {} bytes of workspace or more, strategy.conv_workspace_size_limit allows {}", *least,
          options.workspace_limit));
    };
    const std::string problem =
        fmt::format("{} within {} bytes", problem_.describe(), options.workspace_limit);
    algorithm_ = device_.algorithms().get(
        problem, {.search = search, .find = [this](const std::string& name) { return find(name); }});
  }

  Algorithm algorithm_of(std::shared_ptr<const ConvolutionPlan> plan, const Padding& padding) const {
    const std::size_t copies = padding.bytes() - padding_to(problem_.w[1]).bytes();
    return {fmt::format("{}, {} channels", plan->place(), padding.channels), plan->workspace_bytes() + copies,
            plan, padding.channels};
  }

  // The algorithm that a former search called so.
  std::optional<Algorithm> find(const std::string& name) {
    const std::lock_guard lock(device_.libraries());
    std::vector<Padding> all = paddings();
    all.push_back(padding_to(problem_.w[1]));
    for (const Padding& padding : all) {
      const std::string end = fmt::format(", {} channels", padding.channels);
      if (!name.ends_with(end)) continue;
      auto plan = ConvolutionPlan::at_place(device_.cudnn(), with_channels(padding),
                                            name.substr(0, name.size() - end.size()));
      if (!plan) return std::nullopt;
      const Algorithm found = algorithm_of(std::move(plan), padding);
      return found.workspace <= device_.options().workspace_limit ? std::optional(found) : std::nullopt;
    }
    return std::nullopt;
  }

  ConvolutionProblem with_channels(const Padding& padding) const {
    ConvolutionProblem problem = problem_;
    const std::int64_t more = padding.channels - problem_.w[1];
    problem.x[1] += more, problem.w[1] += more;
    return problem;
  }

  // Memory for channels that were added counts as workspace; that of a frame, which has to be, does not.
  void add_candidates(std::vector<Candidate>& candidates, const Padding& padding,
                      std::optional<std::size_t> first_within = {}) {
    if (first_within) *first_within -= padding.bytes() - padding_to(problem_.w[1]).bytes();
    for (auto& plan : ConvolutionPlan::all(device_.cudnn(), with_channels(padding), first_within))
      candidates.push_back({algorithm_of(std::move(plan), padding), true});
  }

  // With whole groups of channels where that is possible.
  std::vector<Candidate> expected() {
    const std::lock_guard lock(device_.libraries());
    const std::size_t limit = device_.options().workspace_limit;
    std::vector<Candidate> candidates;
    const std::vector<Padding> padded = paddings();
    constexpr std::int64_t kFewChannels = 16;  // for which padding surely pays
    if (!padded.empty() && problem_.w[1] < kFewChannels) add_candidates(candidates, padded.back(), limit);
    if (!first_within(candidates, limit)) add_candidates(candidates, padding_to(problem_.w[1]), limit);
    return candidates;
  }

  // The fastest first; those that want too much workspace come last, untimed.
  std::vector<Candidate> timed() {
    const std::lock_guard lock(device_.libraries());
    std::vector<Candidate> candidates;
    for (const Padding& padding : paddings()) add_candidates(candidates, padding);
    add_candidates(candidates, padding_to(problem_.w[1]));
    const std::size_t limit = device_.options().workspace_limit;
    std::size_t most = 0;
    for (const Candidate& each : candidates)
      if (each.algorithm.workspace <= limit) most = std::max(most, bytes_for(each.algorithm));
    std::size_t y_bytes = static_cast<std::size_t>(element_);
    for (const std::int64_t size : problem_.y) y_bytes *= static_cast<std::size_t>(size);
    const auto image = device_.allocate(image_.original_bytes()),
               w = device_.allocate(filters_.original_bytes()), y = device_.allocate(y_bytes),
               scratch = device_.allocate(most);
    const Arrays trial = {image->data(), w->data(), y->data(), static_cast<std::byte*>(scratch->data())};
    std::vector<std::pair<float, Candidate>> by_time;
    by_time.reserve(candidates.size());
    for (Candidate& each : candidates) by_time.emplace_back(time_of(each, trial, limit), std::move(each));
    std::stable_sort(by_time.begin(), by_time.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    for (std::size_t i = 0; i < by_time.size(); ++i) candidates[i] = std::move(by_time[i].second);
    return candidates;
  }

  // With its copies. An engine that fails is not usable.
  float time_of(Candidate& candidate, const Arrays& trial, std::size_t limit) {
    constexpr float kNever = std::numeric_limits<float>::infinity();
    if (candidate.algorithm.workspace > limit) return kNever;
    ConvolutionPlan::Places told;
    const cudaStream_t stream = device_.stream(runtime::kComputeStream);
    try {
      return device_.time_of([&] { convolve(candidate.algorithm, told, trial, stream); });
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
  int element_;             // bytes
  Copied image_, filters_;  // without channels that are added
  Algorithm algorithm_;
  ConvolutionPlan::Places told_;
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
