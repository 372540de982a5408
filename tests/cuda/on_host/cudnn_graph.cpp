// What the plug-in uses of cuDNN's graph interface: convolutions of f32, f16 and bf16 tensors in their three directions, by
// definition. Of the engines, in the order of the speed that one might expect, the first gives other bits each time, the
// second rounds f32 to TF32, and the third wants a workspace.
#include <cudnn.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/number/half.h"
#include "cuda/on_host/cudnn_handle.h"
#include "cuda/on_host/stream.h"

namespace on_host = fleetrun::cuda::on_host;

namespace {

constexpr std::size_t kWorkspace = 1000;  // bytes, of kHungry

enum EngineNumber : std::int64_t { kMoody, kTensorCores, kHungry, kPlain, kEngines };

struct Node : std::enable_shared_from_this<Node> {
  cudnnBackendDescriptorType_t type{};
  bool finished = false;
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> values;
  std::map<cudnnBackendAttributeName_t, std::shared_ptr<const Node>>
      parts;  // live as long as what they are part of
  std::int64_t engine = 0;

  template <typename T, std::size_t N>
  std::array<T, N> all(cudnnBackendAttributeName_t name) const {
    std::array<T, N> copied{};
    const auto found = values.find(name);
    if (found == values.end() || found->second.size() != sizeof copied)
      on_host::refuse("an attribute of a descriptor is missing or has another size");
    std::memcpy(copied.data(), found->second.data(), sizeof copied);
    return copied;
  }
  template <typename T>
  T one(cudnnBackendAttributeName_t name) const {
    return all<T, 1>(name)[0];
  }
  const Node& part(cudnnBackendAttributeName_t name) const {
    const auto found = parts.find(name);
    if (found == parts.end()) on_host::refuse("a part of a descriptor is missing");
    return *found->second;
  }
};

std::map<const void*, std::shared_ptr<Node>>& nodes() {
  static std::map<const void*, std::shared_ptr<Node>> all;
  return all;
}

Node& node(cudnnBackendDescriptor_t descriptor) {
  const auto found = nodes().find(descriptor);
  if (found == nodes().end()) on_host::refuse("a descriptor that nobody made");
  return *found->second;
}

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
      return 4;
    default:
      on_host::refuse("an attribute of a type that this cuDNN does not know");
  }
}

// Sizes as n, c, h, w (filters: k, c, r, s), with the step from one to the next of each.
struct Tensor {
  cudnnDataType_t type;
  std::array<std::int64_t, 4> sizes, steps;

  explicit Tensor(const Node& from)
      : type(from.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        sizes(from.all<std::int64_t, 4>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        steps(from.all<std::int64_t, 4>(CUDNN_ATTR_TENSOR_STRIDES)) {}

  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return n * steps[0] + c * steps[1] + h * steps[2] + w * steps[3];
  }
  std::size_t count() const { return static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]); }
  std::vector<double> read(const void* data) const {
    std::vector<double> values(count());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(element(data, i));
    return values;
  }
  void write(const std::vector<double>& values, void* data) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<float>(values[i]);
      if (type == CUDNN_DATA_FLOAT)
        static_cast<float*>(data)[i] = value;
      else
        static_cast<std::uint16_t*>(data)[i] =
            type == CUDNN_DATA_HALF ? fleetrun::f32_to_f16(value) : fleetrun::f32_to_bf16(value);
    }
  }
  void expect(const void* data) const {
    const std::size_t bytes = count() * (type == CUDNN_DATA_FLOAT ? sizeof(float) : sizeof(std::uint16_t));
    on_host::expect_reachable(data, bytes, "a convolution");
  }

 private:
  float element(const void* data, std::size_t i) const {
    if (type == CUDNN_DATA_FLOAT) return static_cast<const float*>(data)[i];
    const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[i];
    return type == CUDNN_DATA_HALF ? fleetrun::f16_to_f32(bits) : fleetrun::bf16_to_f32(bits);
  }
};

// The names of what an operation consists of.
struct Names {
  cudnnBackendAttributeName_t convolution, x, w, y;
};

Names names_of(cudnnBackendDescriptorType_t operation) {
  if (operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  if (operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

struct Convolution {
  cudnnBackendDescriptorType_t operation;
  Tensor x, w, y;
  std::array<std::int64_t, 2> padding, strides, dilations;

  Convolution(const Node& of, const Names& names)
      : operation(of.type), x(of.part(names.x)), w(of.part(names.w)), y(of.part(names.y)) {
    const Node& how = of.part(names.convolution);
    padding = how.all<std::int64_t, 2>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    strides = how.all<std::int64_t, 2>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    dilations = how.all<std::int64_t, 2>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    if (x.type != w.type || x.type != y.type) on_host::refuse("a convolution of mixed types");
    if (y.sizes[0] != x.sizes[0] || y.sizes[1] != w.sizes[0] || x.sizes[1] % w.sizes[1] != 0)
      on_host::refuse("a convolution of sizes that do not fit");
    const auto after = how.all<std::int64_t, 2>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t reach = dilations[axis] * (w.sizes[axis + 2] - 1) + 1;
      const std::int64_t room = x.sizes[axis + 2] + padding[axis] + after[axis] - reach;
      if (y.sizes[axis + 2] != room / strides[axis] + 1)
        on_host::refuse("a convolution of sizes that do not fit");
    }
  }

  // visit(place in x, place in w, place in y) for all products of the convolution.
  template <typename Visit>
  void each_product(const Visit& visit) const {
    const std::int64_t per_group = y.sizes[1] / (x.sizes[1] / w.sizes[1]);
    for (std::int64_t n = 0; n < y.sizes[0]; ++n)
      for (std::int64_t k = 0; k < y.sizes[1]; ++k)
        for (std::int64_t i = 0; i < y.sizes[2]; ++i)
          for (std::int64_t j = 0; j < y.sizes[3]; ++j)
            for (std::int64_t r = 0; r < w.sizes[2]; ++r)
              for (std::int64_t s = 0; s < w.sizes[3]; ++s) {
                const std::int64_t row = i * strides[0] - padding[0] + r * dilations[0];
                const std::int64_t column = j * strides[1] - padding[1] + s * dilations[1];
                if (row < 0 || row >= x.sizes[2] || column < 0 || column >= x.sizes[3]) continue;
                const std::int64_t from = x.at(n, k / per_group * w.sizes[1], row, column);
                const std::int64_t by = w.at(k, 0, r, s), to = y.at(n, k, i, j);
                for (std::int64_t c = 0; c < w.sizes[1]; ++c)
                  visit(static_cast<std::size_t>(from + c * x.steps[1]),
                        static_cast<std::size_t>(by + c * w.steps[1]), static_cast<std::size_t>(to));
              }
  }

  void run(void* const x_data, void* const w_data, void* const y_data) const {
    if (operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
      return make(y, y_data, x, x_data, w, w_data, [](auto i, auto j, auto k) {
        return std::array{k, i, j};
      });
    if (operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
      return make(x, x_data, y, y_data, w, w_data, [](auto i, auto j, auto k) {
        return std::array{i, k, j};
      });
    make(w, w_data, x, x_data, y, y_data, [](auto i, auto j, auto k) { return std::array{j, i, k}; });
  }

 private:
  // order(places in x, w, y): those in what is made and in the two that are read.
  template <typename Order>
  void make(const Tensor& made, void* made_data, const Tensor& one, const void* one_data, const Tensor& other,
            const void* other_data, const Order& order) const {
    const std::vector<double> ones = one.read(one_data), others = other.read(other_data);
    std::vector<double> sums(made.count());
    each_product([&](std::size_t i, std::size_t j, std::size_t k) {
      const auto [to, first, second] = order(i, j, k);
      sums[to] += ones[first] * others[second];
    });
    made.write(sums, made_data);
  }
};

Convolution convolution_of(const Node& graph) {
  const Node& operation = graph.part(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const Names names = names_of(operation.type);
  return {operation, names};
}

// As the plug-in has to: one that was offered for good, with its workspace.
void expect_engine(std::int64_t engine, const void* workspace) {
  if (engine == kMoody) on_host::refuse("a convolution by an engine of other bits each time");
  if (engine != kHungry) return;
  on_host::expect_reachable(workspace, kWorkspace, "a convolution's workspace");
  if (reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0) on_host::refuse("a workspace lies askew");
}

// Fills descriptors that the plug-in made with what belongs to `of`.
void give_parts(const Node& of, cudnnBackendAttributeName_t name, std::int64_t wanted, std::int64_t* count,
                void* into) {
  auto* const descriptors = static_cast<cudnnBackendDescriptor_t*>(into);
  if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    *count = 1;
    node(descriptors[0]).engine = of.engine;
    return;
  }
  *count = kEngines;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(wanted, kEngines); ++i) {
    Node& config = node(descriptors[i]);
    config.engine = i;
    config.parts[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = of.parts.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    config.finished = true;
  }
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): cuDNN's names
extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  const std::lock_guard lock(on_host::machine());
  const auto fresh = std::make_shared<Node>();
  fresh->type = type;
  nodes()[fresh.get()] = fresh;
  *made = fresh.get();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  const std::lock_guard lock(on_host::machine());
  if (nodes().erase(descriptor) == 0) on_host::refuse("a descriptor is destroyed twice");
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const std::lock_guard lock(on_host::machine());
  Node& finished = node(descriptor);
  if (finished.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
    convolution_of(finished);  // refuses what does not fit
  finished.finished = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* elements) {
  const std::lock_guard lock(on_host::machine());
  Node& of = node(descriptor);
  if (of.finished) on_host::refuse("a descriptor is changed after its end");
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    Node& part = node(*static_cast<const cudnnBackendDescriptor_t*>(elements));
    if (count != 1 || !part.finished) on_host::refuse("a part of a descriptor is not finished");
    of.parts[name] = part.shared_from_this();
    return CUDNN_STATUS_SUCCESS;
  }
  const auto* const bytes = static_cast<const std::byte*>(elements);
  of.values[name].assign(bytes, bytes + bytes_of(type) * static_cast<std::size_t>(count));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       std::int64_t wanted, std::int64_t* count, void* into) {
  const std::lock_guard lock(on_host::machine());
  const Node& of = node(descriptor);
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    give_parts(of, name, wanted, count, into);
    return CUDNN_STATUS_SUCCESS;
  }
  *count = 1;
  if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) *static_cast<std::int64_t*>(into) = of.engine;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
    *static_cast<std::int64_t*>(into) =
        of.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine == kHungry ? kWorkspace : 0;
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    auto* const notes = static_cast<cudnnBackendNumericalNote_t*>(into);
    *count = of.engine == kMoody || of.engine == kTensorCores ? 1 : 0;
    notes[0] = of.engine == kMoody ? CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC : CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const std::lock_guard lock(on_host::machine());
  const Node& config = node(plan).part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Convolution convolution = convolution_of(config.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  expect_engine(config.engine, node(pack).one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  const auto ids = node(pack).all<std::int64_t, 3>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  if (ids != std::array<std::int64_t, 3>{'x', 'w', 'y'}) on_host::refuse("tensors that nobody described");
  const auto data = node(pack).all<void*, 3>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  convolution.x.expect(data[0]), convolution.w.expect(data[1]), convolution.y.expect(data[2]);
  on_host::give_kernel(handle->stream, &on_host::Counts::cudnn,
                       [=] { convolution.run(data[0], data[1], data[2]); });
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
