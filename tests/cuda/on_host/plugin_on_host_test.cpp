// What a job says about the device, as the plug-in carries it out on the CUDA of the host.
#include <doctest/doctest.h>

#include "base/error/error.h"
#include "runtime/exec/executor.h"
#include "runtime/kernels/load_plugin.h"
#include "support/cache_here.h"
#include "support/run_op.h"
#include "support/small_net.h"

namespace fleetrun::runtime::plugin_on_host_test {
namespace {

using test::ProgramRun;

std::unique_ptr<Device> device_with(const PluginOptions& options) {
  return load_plugin(FLEETRUN_CUDA_PLUGIN).make_device(options);
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

Program one_convolution(std::int64_t channels, const std::string& dtype) {
  Program program;
  Builder builder(program, all_ops());
  const auto cast = [&](const std::string& name, ValueId x) {
    return builder.op(name, "cast", {{"x", x}}, {{"dtype", dtype}});
  };
  const ValueId x = cast("x", builder.feed("image", {2, channels, 8, 8}));
  const ValueId w = cast("w", builder.parameter("filters", {4, channels, 3, 3}, {}));
  builder.op("conv", "conv2d", {{"x", x}, {"w", w}}, test::convolution(1, 1));
  return program;
}

std::string kernel_of_convolution(const PluginOptions& options, std::int64_t channels = 3,
                                  const std::string& dtype = "f32") {
  const auto device = device_with(options);
  const ProgramRun run(one_convolution(channels, dtype), all_ops(), *device);
  for (std::size_t i = 0; i < run.program().ops.size(); ++i)
    if (run.program().ops[i].type == "conv2d") return run.kernel(i).describe();
  return "none";
}

TEST_CASE("the first engine that gives the same bits each time is taken, if its workspace is allowed") {
  CHECK(kernel_of_convolution({.workspace_limit = 1000}) == "cuDNN NCHW engine 2, 1000 bytes of workspace");
  CHECK(kernel_of_convolution({.workspace_limit = 999}) == "cuDNN NCHW engine 3, 0 bytes of workspace");
  CHECK(kernel_of_convolution({.exhaustive_search = false, .workspace_limit = 1000}) ==
        "cuDNN NCHW engine 2, 1000 bytes of workspace");
  CHECK(kernel_of_convolution({.workspace_limit = 1000, .channels_last = true}) ==
        "cuDNN NHWC engine 2, 1000 bytes of workspace");
}

std::vector<std::string> choices_after_convolution(const PluginOptions& options) {
  const auto device = device_with(options);
  const ProgramRun run(one_convolution(3, "f32"), all_ops(), *device);
  return device->choices();
}

TEST_CASE("the results of a search are kept for the next start, and rank 0 says how many there were") {
  const CacheHere cache("gpu");
  const PluginOptions searching = {.workspace_limit = 1000};
  using Lines = std::vector<std::string>;
  CHECK(choices_after_convolution(searching) == Lines{"convolutions: #searched=1, #cache hits=0"});
  CHECK(choices_after_convolution(searching) == Lines{"convolutions: #searched=0, #cache hits=1"});
  CHECK(kernel_of_convolution(searching) == "cuDNN NCHW engine 2, 1000 bytes of workspace");
  const PluginOptions padded = {.workspace_limit = 10'000, .channels_last = true};
  for (int start = 0; start < 2; ++start)
    CHECK(kernel_of_convolution(padded, 3, "bf16") ==
          "cuDNN NHWC engine 1, 4 channels, 1536 bytes of workspace");
  const PluginOptions other = {.workspace_limit = 999};  // another limit is another problem
  CHECK(choices_after_convolution(other) == Lines{"convolutions: #searched=1, #cache hits=0"});
  CHECK(choices_after_convolution({.exhaustive_search = false, .workspace_limit = 1000}).empty());
}

TEST_CASE("an engine may give other bits each time where the job allows it") {
  CHECK(
      kernel_of_convolution({.exhaustive_search = false, .deterministic = false, .workspace_limit = 1000}) ==
      "cuDNN NCHW engine 0, 0 bytes of workspace");
}

TEST_CASE("only with TF32 an engine may take matrix units that round f32") {
  CHECK(kernel_of_convolution({.workspace_limit = 1000, .tf32 = true}) ==
        "cuDNN NCHW engine 1, 0 bytes of workspace");
}

TEST_CASE("for matrix units channels of zeros are added: where nothing is faster, as few as possible") {
  const std::size_t least =
      2 * 8 * 8 * 4 * 2 + 512;  // bytes: copies of the image and, rounded up, the filters
  PluginOptions options = {.workspace_limit = 10'000, .channels_last = true};
  CHECK(kernel_of_convolution(options, 3, "bf16") ==
        "cuDNN NHWC engine 1, 4 channels, 1536 bytes of workspace");
  CHECK(kernel_of_convolution(options, 5, "f16") ==
        "cuDNN NHWC engine 1, 8 channels, 2816 bytes of workspace");
  CHECK(kernel_of_convolution(options, 8, "f16") == "cuDNN NHWC engine 1, 0 bytes of workspace");
  options.exhaustive_search = false;
  CHECK(kernel_of_convolution(options, 3, "bf16") ==
        "cuDNN NHWC engine 1, 8 channels, 2816 bytes of workspace");
  options.workspace_limit = least;
  CHECK(kernel_of_convolution(options, 3, "bf16") ==
        "cuDNN NHWC engine 1, 4 channels, 1536 bytes of workspace");
  options.workspace_limit = least - 1;
  CHECK(kernel_of_convolution(options, 3, "bf16") == "cuDNN NHWC engine 1, 0 bytes of workspace");
  options = {.workspace_limit = 10'000, .tf32 = true, .channels_last = true};
  CHECK(kernel_of_convolution(options) == "cuDNN NHWC engine 1, 4 channels, 2816 bytes of workspace");
  options.channels_last = false;
  CHECK(kernel_of_convolution(options) == "cuDNN NCHW engine 1, 0 bytes of workspace");
}

TEST_CASE("a product of matrices that no algorithm does within the workspace is refused") {
  const auto device = device_with({.workspace_limit = 0});
  const std::map<std::string, test::Given> inputs = {{"x", {{1, 2}, test::Floats{1, 2}}},
                                                     {"w", {{1, 2}, test::Floats{3, 4}}}};
  CHECK(message_of([&] { test::OpRun("fc", inputs, {}, *device); }) ==
        "cuBLASLt has no product within 0 bytes of workspace");
}

TEST_CASE("the mode of batch_norm is the job's") {
  for (const bool persistent : {true, false}) {
    const auto device = device_with({.workspace_limit = 1 << 20U, .persistent_batch_norm = persistent});
    const ProgramRun run(test::small_net(3), all_ops(), *device);
    for (std::size_t i = 0; i < run.program().ops.size(); ++i)
      if (run.program().ops[i].type.starts_with("batch_norm"))
        CHECK(run.kernel(i).describe() == (persistent ? "cuDNN spatial persistent" : "cuDNN spatial"));
  }
}

TEST_CASE("a share of the memory is taken at the start, and is what there is") {
  constexpr std::size_t kMegabyte = 1 << 20U;  // of the 96 that this device has
  const auto device = device_with({.memory_fraction = 0.5});
  const auto first = device->allocate(40 * kMegabyte);
  CHECK(message_of([&] { device->allocate(16 * kMegabyte); }) ==
        "16777216 bytes do not fit into the device memory that was taken at the start; 8388608 are free");
  const auto rest = device_with({});
  CHECK(message_of([&] {
          rest->allocate(49 * kMegabyte);
        }).starts_with("getting 51380224 bytes of device memory: CUDA says"));
  CHECK(message_of([&] { rest->allocate(48 * kMegabyte); }) == "no error");
}

TEST_CASE("images keep their channels last from the first convolution to the last pooling") {
  const auto device = device_with({.workspace_limit = 1 << 20U, .channels_last = true});
  const ProgramRun run(test::small_net(3), all_ops(), *device);
  const auto layout = [&](const std::string& name) {
    return run.program().value(run.program().find(name)).layout.name;
  };
  for (const char* name : {"conv1", "conv1.w", "conv1.w.velocity", "conv1.w@GRAD", "bn1.y", "relu1", "pool1",
                           "relu2", "pool2", "conv2@GRAD"})
    CHECK_MESSAGE(layout(name) == "nhwc", name);
  for (const char* name : {"image", "label", "conv1.b", "dropout", "fc", "fc.w", "loss"})
    CHECK_MESSAGE(layout(name).empty(), name);
  // In front: the images; around dropout, whose choice depends on the order of elements: its input and gradient.
  CHECK(run.op_types().starts_with(
      "reorder conv2d batch_norm relu pool2d conv2d relu pool2d reorder dropout fc"));
  CHECK(device->version().ends_with("f32, NHWC"));
}

TEST_CASE("the log of a rank names its GPU and the versions as Paddle's does") {
  const std::string notice = device_with({.workspace_limit = 1 << 20U})->notice();
  CHECK_MESSAGE(
      notice.starts_with("Please NOTE: device: 0, GPU Compute Capability: 0.0, Driver API Version: 13.2, "
                         "Runtime API Version: "),
      notice);
  CHECK_MESSAGE(notice.find("\ndevice: 0, cuDNN Version: ") != std::string::npos, notice);
  CHECK_MESSAGE(notice.ends_with("f32, NCHW\n"), notice);
  CHECK(make_cpu_device()->notice().empty());
}

TEST_CASE("where images stay as they are fed, nothing is reordered") {
  const auto device = device_with({.workspace_limit = 1 << 20U});
  const ProgramRun run(test::small_net(3), all_ops(), *device);
  CHECK(run.op_types().find("reorder") == std::string::npos);
}

}  // namespace
}  // namespace fleetrun::runtime::plugin_on_host_test
