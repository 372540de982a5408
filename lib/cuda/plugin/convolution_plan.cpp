#include "cuda/plugin/convolution_plan.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetrun::cuda {
namespace {

using Node = std::unique_ptr<void, Destroy<cudnnBackendDestroyDescriptor>>;
using Sizes = std::array<std::int64_t, 4>;

// What cuDNN calls the three tensors of a plan.
constexpr std::int64_t kX = 'x', kW = 'w', kY = 'y';
constexpr std::int64_t kAlignment = 64;  // bytes: what the planner promises of values

Node make(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t node = nullptr;
  check(cudnnBackendCreateDescriptor(type, &node), "describing a convolution");
  return Node(node);
}

template <typename T>
void set(const Node& node, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         const T* values, std::int64_t count = 1) {
  check(cudnnBackendSetAttribute(node.get(), name, type, count, values), "describing a convolution");
}

void set(const Node& node, cudnnBackendAttributeName_t name, const Node& part) {
  cudnnBackendDescriptor_t const pointer = part.get();
  set(node, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &pointer);
}

template <std::size_t N>
void set(const Node& node, cudnnBackendAttributeName_t name, const std::array<std::int64_t, N>& values) {
  set(node, name, CUDNN_TYPE_INT64, values.data(), static_cast<std::int64_t>(N));
}

void finish(const Node& node) { check(cudnnBackendFinalize(node.get()), "describing a convolution"); }

cudnnDataType_t type_of(Number type) {
  switch (type) {
    case Number::f16:
      return CUDNN_DATA_HALF;
    case Number::bf16:
      return CUDNN_DATA_BFLOAT16;
    case Number::f32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

Node tensor(std::int64_t id, Number type, const Sizes& sizes, bool channels_last) {
  const auto [n, c, h, w] = sizes;
  const Sizes steps = channels_last ? Sizes{c * h * w, 1, c * w, c} : Sizes{c * h * w, h * w, w, 1};
  Node node = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const cudnnDataType_t of_cudnn = type_of(type);
  set(node, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &of_cudnn);
  set(node, CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  set(node, CUDNN_ATTR_TENSOR_STRIDES, steps);
  set(node, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &id);
  set(node, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &kAlignment);
  finish(node);
  return node;
}

Node convolution_of(const ConvolutionProblem& problem) {
  Node node = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::int64_t axes = 2;
  set(node, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &sums);
  set(node, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
  set(node, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, &axes);
  set(node, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, problem.padding);
  set(node, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, problem.padding);
  set(node, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, problem.strides);
  set(node, CUDNN_ATTR_CONVOLUTION_DILATIONS, problem.dilations);
  finish(node);
  return node;
}

// cuDNN's names of what an operation in each direction consists of.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

Names names_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Direction::grad_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::grad_weights:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// The parts of a graph live as long as it does.
struct Graph {
  Node x, w, y, convolution, operation, graph;

  Graph(cudnnHandle_t cudnn, const ConvolutionProblem& problem)
      : x(tensor(kX, problem.type, problem.x, problem.channels_last)),
        w(tensor(kW, problem.type, problem.w, problem.channels_last)),
        y(tensor(kY, problem.type, problem.y, problem.channels_last)),
        convolution(convolution_of(problem)) {
    const Names names = names_of(problem.direction);
    operation = make(names.operation);
    set(operation, names.convolution, convolution);
    set(operation, names.x, x);
    set(operation, names.w, w);
    set(operation, names.y, y);
    const float one = 1, zero = 0;
    set(operation, names.alpha, CUDNN_TYPE_FLOAT, &one);
    set(operation, names.beta, CUDNN_TYPE_FLOAT, &zero);
    finish(operation);
    graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &cudnn);
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    finish(graph);
  }
};

// Engines with their settings, as cuDNN's heuristics order them. None where a mode has no answer.
std::vector<Node> configs_of(const Node& graph, cudnnBackendHeurMode_t mode) {
  const Node heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
  if (cudnnBackendFinalize(heuristics.get()) != CUDNN_STATUS_SUCCESS) return {};
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        "asking for convolution engines");
  std::vector<Node> configs;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (std::int64_t i = 0; i < count; ++i) {
    configs.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    pointers.push_back(configs.back().get());
  }
  std::int64_t got = 0;
  check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &got, pointers.data()),
        "asking for convolution engines");
  configs.resize(static_cast<std::size_t>(std::min(count, got)));
  return configs;
}

struct Engine {
  std::int64_t number = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;
  bool has(cudnnBackendNumericalNote_t note) const {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  }
};

Engine engine_of(const Node& config) {
  const Node node = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t pointer = node.get();
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &count, &pointer),
        "asking for an engine");
  Engine engine;
  check(cudnnBackendGetAttribute(pointer, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                 &engine.number),
        "asking for an engine's number");
  engine.notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  count = 0;
  check(cudnnBackendGetAttribute(pointer, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, engine.notes.data()),
        "asking for an engine's properties");
  engine.notes.resize(static_cast<std::size_t>(count));
  return engine;
}

// What the job allows: other bits each time or not, and no rounding of f32 to TF32, which tensor cores do, without `tf32`.
bool is_wanted(const Engine& engine, const ConvolutionProblem& problem) {
  if (problem.deterministic && engine.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (problem.type != Number::f32) return true;
  return !engine.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
         (problem.tf32 || !engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
}

// The lists of engines that cuDNN's heuristics give. The second one serves where nothing else does.
struct List {
  cudnnBackendHeurMode_t mode;
  const char* name;
};
constexpr std::array<List, 2> kLists = {
    {{CUDNN_HEUR_MODE_A, "list A"}, {CUDNN_HEUR_MODE_FALLBACK, "the fallbacks"}}};

}  // namespace

// An engine that cuDNN offers for a problem, before it is prepared, which takes time.
struct ConvolutionPlan::Offer {
  Node config;
  std::string name, place;
};

// Those that the job allows, of one list.
std::vector<ConvolutionPlan::Offer> ConvolutionPlan::offers(const ConvolutionProblem& problem,
                                                            const Node& graph, const int list) {
  const List& from = kLists.at(static_cast<std::size_t>(list));
  std::vector<Offer> offers;
  int number = 0;
  for (Node& config : configs_of(graph, from.mode)) {
    ++number;
    const Engine engine = engine_of(config);
    if (!is_wanted(engine, problem)) continue;
    const std::string name = fmt::format("engine {}", engine.number);
    offers.push_back({std::move(config), name, fmt::format("{}, {} of {}", name, number, from.name)});
  }
  return offers;
}

std::shared_ptr<const ConvolutionPlan> ConvolutionPlan::prepare(cudnnHandle_t cudnn, Offer offer) {
  Node plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &cudnn);
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, offer.config);
  if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) return nullptr;
  std::int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                 &count, &bytes),
        "asking for a convolution's workspace");
  return std::shared_ptr<const ConvolutionPlan>(
      new ConvolutionPlan(std::move(offer.config), std::move(plan), static_cast<std::size_t>(bytes),
                          std::move(offer.name), std::move(offer.place)));
}

std::string ConvolutionProblem::describe() const {
  const char* const to = direction == Direction::forward      ? "forward"
                         : direction == Direction::grad_input ? "backward to the input"
                                                              : "backward to the weights";
  const char* const of = type == Number::f16 ? "f16" : type == Number::bf16 ? "bf16" : tf32 ? "TF32" : "f32";
  return fmt::format("{} {} {} x {} w {} y {} padding {} strides {} dilations {}{}", to, of,
                     channels_last ? "nhwc" : "nchw", x, w, y, padding, strides, dilations,
                     deterministic ? "" : ", any engine");
}

std::vector<std::shared_ptr<const ConvolutionPlan>> ConvolutionPlan::all(
    cudnnHandle_t cudnn, const ConvolutionProblem& problem, std::optional<std::size_t> first_within) {
  const Graph graph(cudnn, problem);
  std::vector<std::shared_ptr<const ConvolutionPlan>> plans;
  for (int list = 0; list < static_cast<int>(kLists.size()); ++list) {
    for (Offer& offer : offers(problem, graph.graph, list)) {
      auto plan = prepare(cudnn, std::move(offer));
      if (!plan) continue;
      plans.push_back(std::move(plan));
      if (first_within && plans.back()->workspace_bytes() <= *first_within) return plans;
    }
    if (!plans.empty() && !first_within) break;
  }
  return plans;
}

std::shared_ptr<const ConvolutionPlan> ConvolutionPlan::at_place(cudnnHandle_t cudnn,
                                                                 const ConvolutionProblem& problem,
                                                                 const std::string& place) {
  const Graph graph(cudnn, problem);
  for (int list = 0; list < static_cast<int>(kLists.size()); ++list)
    for (Offer& offer : offers(problem, graph.graph, list))
      if (offer.place == place) return prepare(cudnn, std::move(offer));
  return nullptr;
}

void* ConvolutionPlan::Places::told(const Arrays& arrays) {
  if (told_ && arrays == arrays_) return told_.get();
  Node pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const std::array<const void*, 3> pointers = {arrays.x, arrays.w, arrays.y};
  set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::array<std::int64_t, 3>{kX, kW, kY});
  set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), 3);
  set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &arrays.workspace);
  finish(pack);
  arrays_ = arrays;
  told_ = std::move(pack);
  return told_.get();
}

}  // namespace fleetrun::cuda
