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
#include "cuda/on_host/product.h"
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

using Axes = std::array<std::size_t, 4>;  // in an order

// Sizes as n, c, h, w (filters: k, c, r, s), with the step from one to the next of each.
struct Tensor {
  cudnnDataType_t type;
  std::array<std::int64_t, 4> sizes, steps;

  explicit Tensor(const Node& from)
      : type(from.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        sizes(from.all<std::int64_t, 4>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        steps(from.all<std::int64_t, 4>(CUDNN_ATTR_TENSOR_STRIDES)) {}

  std::size_t count() const { return static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]); }
  // Returns the values of the tensor. `order` lists the axes from the slowest to the fastest; `data` may have another order.
  std::vector<double> read(const void* data, const Axes& order) const {
    std::vector<double> values;
    values.reserve(count());
    each_place(order,
               [&](std::size_t place) { values.push_back(static_cast<double>(element(data, place))); });
    return values;
  }
  void write(const std::vector<double>& values, const Axes& order, void* data) const {
    auto next = values.begin();
    each_place(order, [&](std::size_t place) {
      const auto value = static_cast<float>(*next++);
      if (type == CUDNN_DATA_FLOAT)
        static_cast<float*>(data)[place] = value;
      else
        static_cast<std::uint16_t*>(data)[place] =
            type == CUDNN_DATA_HALF ? fleetrun::f32_to_f16(value) : fleetrun::f32_to_bf16(value);
    });
  }
  void expect(const void* data) const {
    const std::size_t bytes = count() * (type == CUDNN_DATA_FLOAT ? sizeof(float) : sizeof(std::uint16_t));
    on_host::expect_reachable(data, bytes, "a convolution");
  }

 private:
  template <typename Visit>
  void each_place(const Axes& order, const Visit& visit) const {
    const auto [a, b, c, d] = order;
    for (std::int64_t i = 0; i < sizes[a]; ++i)
      for (std::int64_t j = 0; j < sizes[b]; ++j)
        for (std::int64_t k = 0; k < sizes[c]; ++k)
          for (std::int64_t l = 0; l < sizes[d]; ++l)
            visit(static_cast<std::size_t>(i * steps[a] + j * steps[b] + k * steps[c] + l * steps[d]));
  }
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

  void run(void* const x_data, void* const w_data, void* const y_data) const {
    constexpr Axes kChannelsLast = {0, 2, 3, 1}, kInToOut = {2, 3, 1, 0}, kOutToIn = {2, 3, 0, 1};
    const auto in = static_cast<std::size_t>(w.sizes[1]), all_out = static_cast<std::size_t>(w.sizes[0]);
    const std::size_t out =
        all_out / static_cast<std::size_t>(x.sizes[1] / w.sizes[1]);  // of a group, as `in`
    if (operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
      const std::vector<double> xs = x.read(x_data, kChannelsLast), ws = w.read(w_data, kInToOut);
      std::vector<double> sums(y.count());
      each_product([&](std::size_t i, std::size_t j, std::size_t k, std::size_t group) {
        on_host::add_product({1, in, out, all_out}, &xs[i + group * in], &ws[j + group * out],
                             &sums[k + group * out]);
      });
      return y.write(sums, kChannelsLast, y_data);
    }
    const std::vector<double> ys = y.read(y_data, kChannelsLast);
    if (operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
      const std::vector<double> ws = w.read(w_data, kOutToIn);
      std::vector<double> sums(x.count());
      each_product([&](std::size_t i, std::size_t j, std::size_t k, std::size_t group) {
        on_host::add_product({1, out, in, in}, &ys[k + group * out], &ws[j + group * out * in],
                             &sums[i + group * in]);
      });
      return x.write(sums, kChannelsLast, x_data);
    }
    const std::vector<double> xs = x.read(x_data, kChannelsLast);
    std::vector<double> sums(w.count());
    each_product([&](std::size_t i, std::size_t j, std::size_t k, std::size_t group) {
      on_host::add_product({in, 1, out, all_out}, &xs[i + group * in], &ys[k + group * out],
                           &sums[j + group * out]);
    });
    w.write(sums, kInToOut, w_data);
  }

 private:
  // visit(place in x, in w, in y, group) for each pair of pixels and each group; the places are those of the first channel.
  template <typename Visit>
  void each_product(const Visit& visit) const {
    for (std::int64_t n = 0; n < y.sizes[0]; ++n)
      for (std::int64_t i = 0; i < y.sizes[2]; ++i)
        for (std::int64_t j = 0; j < y.sizes[3]; ++j)
          for (std::int64_t r = 0; r < w.sizes[2]; ++r)
            for (std::int64_t s = 0; s < w.sizes[3]; ++s) {
              const std::int64_t row = i * strides[0] - padding[0] + r * dilations[0];
              const std::int64_t column = j * strides[1] - padding[1] + s * dilations[1];
              if (row < 0 || row >= x.sizes[2] || column < 0 || column >= x.sizes[3]) continue;
              const std::int64_t from = ((n * x.sizes[2] + row) * x.sizes[3] + column) * x.sizes[1];
              const std::int64_t by = (r * w.sizes[3] + s) * w.sizes[0] * w.sizes[1];
              const std::int64_t to = ((n * y.sizes[2] + i) * y.sizes[3] + j) * y.sizes[1];
              for (std::int64_t group = 0; group < x.sizes[1] / w.sizes[1]; ++group)
                visit(static_cast<std::size_t>(from), static_cast<std::size_t>(by),
                      static_cast<std::size_t>(to), static_cast<std::size_t>(group));
            }
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
