// Convolutions of cuDNN on plain images (NCHW) or such with their channels last (NHWC). Its algorithms are looked for once per distinct problem: timed with
// strategy.cudnn_exhaustive_search, else as cuDNN expects them; only those that give the same bits every time, within
// strategy.conv_workspace_size_limit. cuDNN pads both sides alike: for other paddings the image is put into a frame of
// zeros first.
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/ranges.h>

#include "cuda/plugin/simple_kernel.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;
using runtime::Shape;

constexpr float kOne = 1, kZero = 0;
constexpr int kMostAlgorithms = 16;  // more than cuDNN has of any kind

using Filter = std::unique_ptr<cudnnFilterStruct, Destroy<cudnnDestroyFilterDescriptor>>;
using Descriptor = std::unique_ptr<cudnnConvolutionStruct, Destroy<cudnnDestroyConvolutionDescriptor>>;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

// The sizes of a convolution, as forward and both backward directions share them.
struct Problem {
  std::array<int, 4> x, w, y;  // x with its frame
  cudnnTensorFormat_t format;
  Channels made;  // of y
  std::array<int, 2> padding, strides, dilations;
  int groups;
  bool framed;
  Frame frame;  // where framed

  Problem(const OpView& op, const Value& image, const Value& weight, const Value& convolved)
      : w(narrowed(op, weight)),
        y(narrowed(op, convolved)),
        format(format_of(image.layout)),
        made(channels_of(convolved)),
        groups(narrow(op, op.integer("groups"))) {
    const runtime::ops::Window window = runtime::ops::read_window(op, weight.shape[2], weight.shape[3]);
    framed = window.before != window.after;
    x = narrowed(op, image);
    const bool last = is_channels_last(image.layout);
    frame.planes = last ? image.shape[0] : image.shape[0] * image.shape[1];
    frame.lanes = last ? x[1] : 1;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      strides[axis] = narrow(op, window.strides[axis]);
      dilations[axis] = narrow(op, window.dilations[axis]);
      padding[axis] = framed ? 0 : narrow(op, window.before[axis]);
      frame.in[axis] = x[axis + 2];
      frame.before[axis] = narrow(op, window.before[axis]);
      if (framed) x[axis + 2] += narrow(op, window.before[axis] + window.after[axis]);
      frame.out[axis] = x[axis + 2];
    }
  }

  static std::array<int, 4> narrowed(const OpView& op, const Value& value) {
    narrow(op, elements_of(op, value));
    std::array<int, 4> sizes{};
    std::transform(value.shape.begin(), value.shape.end(), sizes.begin(),
                   [](std::int64_t size) { return static_cast<int>(size); });
    return sizes;
  }
  static std::size_t bytes(const std::array<int, 4>& sizes) {
    std::size_t count = sizeof(float);
    for (const int size : sizes) count *= static_cast<std::size_t>(size);
    return count;
  }
  std::size_t framed_bytes() const { return framed ? rounded(bytes(x)) : 0; }

  std::string describe() const {
    return fmt::format("{} x {} w {} y {} padding {} strides {} dilations {} groups {}",
                       format == CUDNN_TENSOR_NHWC ? "nhwc" : "nchw", x, w, y, padding, strides, dilations,
                       groups);
  }
};

// The same as descriptors.
struct Descriptors {
  CudnnTensor x, y;
  Filter w;
  Descriptor convolution;

  Descriptors(const Problem& problem, bool tf32)
      : x(make_tensor(problem.x, problem.format)), y(make_tensor(problem.y, problem.format)) {
    cudnnFilterDescriptor_t filter = nullptr;
    check(cudnnCreateFilterDescriptor(&filter), "making a filter descriptor");
    w.reset(filter);
    check(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, problem.format, problem.w[0], problem.w[1],
                                     problem.w[2], problem.w[3]),
          "describing a filter");
    cudnnConvolutionDescriptor_t descriptor = nullptr;
    check(cudnnCreateConvolutionDescriptor(&descriptor), "making a convolution descriptor");
    convolution.reset(descriptor);
    check(cudnnSetConvolution2dDescriptor(descriptor, problem.padding[0], problem.padding[1],
                                          problem.strides[0], problem.strides[1], problem.dilations[0],
                                          problem.dilations[1], CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "describing a convolution");
    check(cudnnSetConvolutionGroupCount(descriptor, problem.groups), "setting the groups of a convolution");
    check(cudnnSetConvolutionMathType(descriptor, tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH),
          "choosing a convolution's arithmetic");
  }
};

template <typename Offer>
std::vector<Candidate> candidates_of(const std::array<Offer, kMostAlgorithms>& offers, int count) {
  std::vector<Candidate> candidates;
  for (int i = 0; i < count; ++i) {
    const Offer& offer = offers[static_cast<std::size_t>(i)];
    candidates.push_back({{.number = static_cast<int>(offer.algo),
                           .math = static_cast<int>(offer.mathType),
                           .workspace = offer.memory},
                          offer.status == CUDNN_STATUS_SUCCESS && offer.determinism == CUDNN_DETERMINISTIC});
  }
  return candidates;
}

// Memory for a search: values of the problem's sizes and a workspace.
struct Trial {
  std::unique_ptr<comm::Memory> x, w, y, workspace;
  std::size_t workspace_bytes;

  Trial(CudaDevice& device, const Problem& problem)
      : x(device.allocate(Problem::bytes(problem.x))),
        w(device.allocate(Problem::bytes(problem.w))),
        y(device.allocate(Problem::bytes(problem.y))),
        workspace_bytes(std::min(device.options().workspace_limit, device.free_bytes() / 2)) {
    workspace = device.allocate(workspace_bytes);
  }
};

// A tensor or filter of a convolution, and its memory while algorithms are timed.
template <typename Descriptor>
struct Operand {
  Descriptor descriptor;
  std::unique_ptr<comm::Memory> Trial::*memory;
};

class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(const OpView& op, Device& device, Problem problem)
      : device_(as_cuda(device)),
        doing_("running " + op.def().name),
        problem_(problem),
        descriptors_(problem_, device_.options().tf32) {}

  std::size_t scratch_bytes() const override {
    return with_room_to_align(problem_.framed_bytes() + algorithm_.workspace);
  }
  std::string describe() const override {
    return fmt::format("cuDNN {} algorithm {}, {} bytes of workspace",
                       problem_.format == CUDNN_TENSOR_NHWC ? "NHWC" : "NCHW", algorithm_.number,
                       algorithm_.workspace);
  }

  void run(const RunContext& context) override {
    const std::lock_guard lock(device_.libraries());
    convolve(context, device_.cudnn(), device_.stream(context.stream));
    check(cudaGetLastError(), doing_);
  }

 protected:
  Operand<cudnnTensorDescriptor_t> x() const { return {descriptors_.x.get(), &Trial::x}; }
  Operand<cudnnFilterDescriptor_t> w() const { return {descriptors_.w.get(), &Trial::w}; }
  Operand<cudnnTensorDescriptor_t> y() const { return {descriptors_.y.get(), &Trial::y}; }

  // Called by the constructors of those below. They know the direction: which of cuDNN's functions times algorithms (`find`)
  // or expects their speed (`get`), which two operands it reads and which one it makes.
  template <typename Offer, typename Find, typename Get, typename A, typename B, typename Made>
  void choose(const OpView& op, const Find& find, const Get& get, const A& a, const B& b, const Made& made) {
    int count = 0;
    std::array<Offer, kMostAlgorithms> offers{};
    const cudnnConvolutionDescriptor_t convolution = descriptors_.convolution.get();
    choose_among(
        op,
        [&](const Trial& trial) {
          check(find(device_.cudnn(), a.descriptor, (trial.*a.memory)->data(), b.descriptor,
                     (trial.*b.memory)->data(), convolution, made.descriptor, (trial.*made.memory)->data(),
                     kMostAlgorithms, &count, offers.data(), trial.workspace->data(), trial.workspace_bytes),
                "timing convolutions");
          return candidates_of(offers, count);
        },
        [&] {
          check(get(device_.cudnn(), a.descriptor, b.descriptor, convolution, made.descriptor,
                    kMostAlgorithms, &count, offers.data()),
                "choosing a convolution");
          return candidates_of(offers, count);
        });
  }

  virtual void convolve(const RunContext& context, cudnnHandle_t cudnn, cudaStream_t stream) = 0;

  // The image with its frame, which lies first in the scratch memory.
  const float* framed(const RunContext& context, const float* x, cudaStream_t stream) const {
    if (!problem_.framed) return x;
    auto* const with_frame = reinterpret_cast<float*>(align(context.scratch));
    put_into_frame(x, with_frame, problem_.frame, stream);
    return with_frame;
  }
  void* workspace(const RunContext& context) const {
    return align(context.scratch) + problem_.framed_bytes();
  }

  CudaDevice& device_;
  std::string doing_;
  Problem problem_;
  Descriptors descriptors_;
  Algorithm algorithm_;

 private:
  template <typename Time, typename Expect>
  void choose_among(const OpView& op, const Time& time, const Expect& expect) {
    const runtime::PluginOptions& options = device_.options();
    const std::string problem = fmt::format("{} {}", op.def().name, problem_.describe());
    algorithm_ = device_.algorithms().get(problem, [&] {
      const std::lock_guard lock(device_.libraries());
      const std::vector<Candidate> candidates =
          options.exhaustive_search ? time(Trial(device_, problem_)) : expect();
      if (const auto found = first_within(candidates, options.workspace_limit)) return *found;
      const auto least = least_workspace(candidates);
      if (!least)
        op.fail(fmt::format("cuDNN has no deterministic algorithm for {}{}", problem_.describe(),
                            options.channels_last ? "; FLEETRUN_LAYOUT=nchw gives it another layout" : ""));
      op.fail(fmt::format(
          "cuDNN wants {} bytes of workspace or more, strategy.conv_workspace_size_limit allows {}", *least,
          options.workspace_limit));
    });
    if (!options.tf32)
      return;  // full f32 was asked for from the start, whatever the algorithm could do besides
    check(cudnnSetConvolutionMathType(descriptors_.convolution.get(),
                                      static_cast<cudnnMathType_t>(algorithm_.math)),
          "choosing a convolution's arithmetic");
  }
};

class Forward : public ConvolutionKernel {
 public:
  Forward(const OpView& op, Device& device)
      : ConvolutionKernel(op, device, Problem(op, op.input("x"), op.input("w"), op.output("y"))),
        x_(op.input_id("x")),
        w_(op.input_id("w")),
        b_(op.input_id("b")),
        y_(op.output_id("y")) {
    choose<cudnnConvolutionFwdAlgoPerf_t>(op, cudnnFindConvolutionForwardAlgorithmEx,
                                          cudnnGetConvolutionForwardAlgorithm_v7, x(), w(), y());
  }

 private:
  void convolve(const RunContext& context, cudnnHandle_t cudnn, cudaStream_t stream) override {
    const Descriptors& d = descriptors_;
    check(cudnnConvolutionForward(
              cudnn, &kOne, d.x.get(), framed(context, at(context, x_), stream), d.w.get(), context.data[w_],
              d.convolution.get(), static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_.number),
              workspace(context), algorithm_.workspace, &kZero, d.y.get(), context.data[y_]),
          doing_);
    if (b_ != runtime::kNone) add_to_channels(at(context, y_), at(context, b_), problem_.made, stream);
  }
  ValueId x_, w_, b_, y_;
};

class GradInput : public ConvolutionKernel {
 public:
  GradInput(const OpView& op, Device& device)
      : ConvolutionKernel(op, device, Problem(op, op.output("dx"), op.input("w"), op.input("dy"))),
        dy_(op.input_id("dy")),
        w_(op.input_id("w")),
        dx_(op.output_id("dx")) {
    choose<cudnnConvolutionBwdDataAlgoPerf_t>(op, cudnnFindConvolutionBackwardDataAlgorithmEx,
                                              cudnnGetConvolutionBackwardDataAlgorithm_v7, w(), y(), x());
  }

 private:
  void convolve(const RunContext& context, cudnnHandle_t cudnn, cudaStream_t stream) override {
    const Descriptors& d = descriptors_;
    void* const made = problem_.framed ? align(context.scratch) : context.data[dx_];
    check(cudnnConvolutionBackwardData(cudnn, &kOne, d.w.get(), context.data[w_], d.y.get(),
                                       context.data[dy_], d.convolution.get(),
                                       static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_.number),
                                       workspace(context), algorithm_.workspace, &kZero, d.x.get(), made),
          doing_);
    if (problem_.framed) take_from_frame(static_cast<float*>(made), at(context, dx_), problem_.frame, stream);
  }
  ValueId dy_, w_, dx_;
};

class GradWeights : public ConvolutionKernel {
 public:
  GradWeights(const OpView& op, Device& device)
      : ConvolutionKernel(op, device, Problem(op, op.input("x"), op.output("dw"), op.input("dy"))),
        x_(op.input_id("x")),
        dy_(op.input_id("dy")),
        dw_(op.output_id("dw")),
        db_(op.output_id("db")) {
    choose<cudnnConvolutionBwdFilterAlgoPerf_t>(op, cudnnFindConvolutionBackwardFilterAlgorithmEx,
                                                cudnnGetConvolutionBackwardFilterAlgorithm_v7, x(), y(), w());
  }

 private:
  void convolve(const RunContext& context, cudnnHandle_t cudnn, cudaStream_t stream) override {
    const Descriptors& d = descriptors_;
    check(cudnnConvolutionBackwardFilter(
              cudnn, &kOne, d.x.get(), framed(context, at(context, x_), stream), d.y.get(), context.data[dy_],
              d.convolution.get(), static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_.number),
              workspace(context), algorithm_.workspace, &kZero, d.w.get(), context.data[dw_]),
          doing_);
    if (db_ != runtime::kNone) sum_of_channels(at(context, dy_), at(context, db_), problem_.made, stream);
  }
  ValueId x_, dy_, dw_, db_;
};

template <typename T>
std::unique_ptr<Kernel> make(const OpView& op, Device& device) {
  return std::make_unique<T>(op, device);
}

}  // namespace

KernelDef conv2d_kernel() { return {.choose_layouts = as_the_job_says, .make = make<Forward>}; }
KernelDef conv2d_grad_input_kernel() { return {.choose_layouts = as_the_job_says, .make = make<GradInput>}; }
KernelDef conv2d_grad_weights_kernel() {
  return {.choose_layouts = as_the_job_says, .make = make<GradWeights>};
}

}  // namespace fleetrun::cuda
