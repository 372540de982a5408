#include "runtime/kernels/load_plugin.h"

#include <doctest/doctest.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime::load_plugin_test {
namespace {

std::string test_plugin(const std::string& name) {
  return fmt::format("{}/libfleetrun_{}.so", FLEETRUN_TEST_PLUGINS, name);
}

std::string refusal(const std::string& path) {
  try {
    load_plugin(path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(error.hint() == "choose --device=cpu");
    return error.message();
  }
  return "loaded";
}

TEST_CASE("a plug-in makes its device") {
  const auto device = load_plugin(test_plugin("good_plugin")).make_device({});
  CHECK(device->name() == "CPU");
}

TEST_CASE("a plug-in that is not there is named with its place") {
  CHECK(refusal("/nowhere/libfleetrun_cuda.so") ==
        "this installation has no CUDA plug-in (/nowhere/libfleetrun_cuda.so)");
}

TEST_CASE("the plug-in of another version is refused with both numbers") {
  const std::string path = test_plugin("other_abi");
  CHECK(refusal(path) ==
        fmt::format("{} has plug-in ABI {}, this fleetrun wants {}", path, kPluginAbi + 1, kPluginAbi));
}

TEST_CASE("a library that is not a plug-in, and a file that is not a library, are refused") {
  const std::string path = test_plugin("no_plugin");
  CHECK(refusal(path) == fmt::format("{} is not a plug-in: it has no function fleetrun_plugin", path));
  CHECK(refusal(FLEETRUN_SOURCE_DIR "/README.md").starts_with("the plug-in cannot be loaded: "));
}

TEST_CASE("the plug-in is looked for beside our libraries") {
  const std::filesystem::path path = cuda_plugin_path();
  CHECK(path.filename() == "libfleetrun_cuda.so");
  CHECK(std::filesystem::exists(path.parent_path() / "libfleetrun_runtime.so"));
}

TEST_CASE("device, strategy and environment become the options of the plug-in") {
  job::StrategySpec strategy;
  strategy.conv_workspace_size_limit = 512;
  strategy.cudnn_exhaustive_search = false;
  Environment environment;
  const PluginOptions plain = plugin_options("cuda:3", strategy, environment);
  CHECK(plain.index == 3);
  CHECK(plain.workspace_limit == 512 * 1024 * 1024);
  CHECK_FALSE(plain.exhaustive_search);
  CHECK(plain.memory_fraction == 0);
  CHECK_FALSE(plain.tf32);
  CHECK(plain.record_steps);
  CHECK_FALSE(plain.register_buffers);
  CHECK(plain.deterministic);
  CHECK(plain.wait_for_collectives);
  CHECK_FALSE(plain.channels_last);
  CHECK(plain.image_library.empty());
  CHECK(plain.activity_library.empty());
  environment.set("FLEETRUN_NVJPEG", "/opt/libnvjpeg.so.13");
  environment.set("FLEETRUN_CUPTI", "/opt/libcupti.so.13");
  environment.set("FLAGS_fraction_of_gpu_memory_to_use", "0.92");
  environment.set("FLEETRUN_TF32", "1");
  environment.set("FLEETRUN_LAYOUT", "nhwc");
  environment.set("FLEETRUN_CUDA_GRAPHS", "0");
  environment.set("FLAGS_cudnn_deterministic", "False");
  strategy.pipeline = true;
  const PluginOptions more = plugin_options("cuda:0", strategy, environment);
  CHECK(more.memory_fraction == doctest::Approx(0.92));
  CHECK(more.tf32);
  CHECK(more.channels_last);
  CHECK_FALSE(more.record_steps);
  CHECK_FALSE(more.deterministic);
  CHECK_FALSE(more.wait_for_collectives);
  CHECK(more.image_library == "/opt/libnvjpeg.so.13");
  CHECK(more.activity_library == "/opt/libcupti.so.13");
}

TEST_CASE("FLEETRUN_NCCL_REGISTER=1 takes effect where all ranks work on the same gradients, and alone") {
  Environment environment;
  environment.set("FLEETRUN_NCCL_REGISTER", "1");
  const auto options_with = [&](const std::function<void(job::StrategySpec&)>& set) {
    job::StrategySpec strategy;
    set(strategy);
    return plugin_options("cuda:0", strategy, environment);
  };
  const PluginOptions plain = options_with([](job::StrategySpec&) {});
  CHECK(plain.register_buffers);
  CHECK(plain.why_not_registered.empty());
  for (const PluginOptions& options :
       {options_with([](job::StrategySpec& strategy) { strategy.pipeline = true; }),
        options_with([](job::StrategySpec& strategy) { strategy.sharding = true; }),
        options_with([](job::StrategySpec& strategy) { strategy.use_hierarchical_allreduce = true; }),
        options_with([](job::StrategySpec& strategy) {
          strategy.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
        })}) {
    CHECK_FALSE(options.register_buffers);
    CHECK(options.why_not_registered.starts_with("FLEETRUN_NCCL_REGISTER=1 has no effect with sharding"));
  }
  environment.set("FLAGS_fraction_of_gpu_memory_to_use", "0.5");
  CHECK_THROWS_WITH_AS(plugin_options("cuda:0", {}, environment), doctest::Contains("wanted one of them"),
                       Error);
}

TEST_CASE(
    "images have their channels last where matrix units compute, unless the environment says how they lie") {
  job::StrategySpec amp;
  amp.amp = true;
  Environment environment;
  CHECK(plugin_options("cuda:0", amp, environment).channels_last);
  environment.set("FLEETRUN_TF32", "1");
  CHECK(plugin_options("cuda:0", {}, environment).channels_last);
  environment.set("FLEETRUN_LAYOUT", "nchw");
  CHECK_FALSE(plugin_options("cuda:0", {}, environment).channels_last);
  CHECK_FALSE(plugin_options("cuda:0", amp, environment).channels_last);
}

TEST_CASE("NVIDIA_TF32_OVERRIDE=0 forbids TF32 whatever else is said") {
  Environment environment;
  environment.set("FLEETRUN_TF32", "1");
  environment.set("NVIDIA_TF32_OVERRIDE", "1");
  CHECK(plugin_options("cuda:0", {}, environment).tf32);
  environment.set("NVIDIA_TF32_OVERRIDE", "0");
  CHECK_FALSE(plugin_options("cuda:0", {}, environment).tf32);
  CHECK_FALSE(plugin_options("cuda:0", {}, environment).channels_last);
}

TEST_CASE("a fraction of memory or a switch out of its range is refused by its name") {
  const auto refused = [](const std::string& name, const std::string& value) {
    Environment environment;
    environment.set(name, value);
    try {
      plugin_options("cuda:0", {}, environment);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("taken");
  };
  for (const std::string value : {"1", "1.5", "-0.1", "half", "", "nan"})
    CHECK(refused("FLAGS_fraction_of_gpu_memory_to_use", value) ==
          fmt::format("FLAGS_fraction_of_gpu_memory_to_use is \"{}\", must be a number from 0 to below 1",
                      value));
  CHECK(refused("FLEETRUN_TF32", "yes") == "FLEETRUN_TF32 is \"yes\", must be 0 or 1");
  CHECK(refused("FLAGS_cudnn_deterministic", "maybe") ==
        "FLAGS_cudnn_deterministic is \"maybe\", must be 0 or 1");
  CHECK(refused("FLEETRUN_LAYOUT", "NHWC") == "FLEETRUN_LAYOUT is \"NHWC\", must be nchw or nhwc");
}

}  // namespace
}  // namespace fleetrun::runtime::load_plugin_test
