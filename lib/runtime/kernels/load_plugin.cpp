#include "runtime/kernels/load_plugin.h"

#include <dlfcn.h>

#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

constexpr const char* kMemoryFraction = "FLAGS_fraction_of_gpu_memory_to_use";  // PaddlePaddle's name
constexpr const char* kTf32 = "FLEETRUN_TF32";
constexpr const char* kTf32Override = "NVIDIA_TF32_OVERRIDE";  // 0 forbids it to all of NVIDIA's libraries
constexpr const char* kLayout = "FLEETRUN_LAYOUT";
constexpr const char* kDeterministic = "FLAGS_cudnn_deterministic";  // PaddlePaddle's name; there it is off
constexpr const char* kGraphs = "FLEETRUN_CUDA_GRAPHS";
constexpr const char* kRegister = "FLEETRUN_NCCL_REGISTER";
constexpr const char* kNvjpeg = "FLEETRUN_NVJPEG";
constexpr const char* kCupti = "FLEETRUN_CUPTI";
constexpr const char* kCpuHint = "choose --device=cpu";

Error refuse(const std::string& message) { return Error(ErrorKind::config, message, kCpuHint); }

double read_memory_fraction(const Environment& environment) {
  const auto text = environment.get(kMemoryFraction);
  if (!text) return 0;
  double fraction = 0;
  const auto [stop, problem] = std::from_chars(text->data(), text->data() + text->size(), fraction);
  const bool number = problem == std::errc{} && stop == text->data() + text->size();
  if (!number || !(fraction >= 0 && fraction < 1))
    throw Error(ErrorKind::usage,
                fmt::format("{} is \"{}\", must be a number from 0 to below 1", kMemoryFraction, *text));
  return fraction;
}

bool read_switch(const Environment& environment, const char* name, const char* usual) {
  const std::string text = environment.get_or(name, usual);
  if (text != "0" && text != "1")
    throw Error(ErrorKind::usage, fmt::format("{} is \"{}\", must be 0 or 1", name, text));
  return text == "1";
}

// A switch of PaddlePaddle, as gflags reads it.
bool read_flag(const Environment& environment, const char* name, bool usual) {
  const std::string text = environment.get_or(name, usual ? "1" : "0");
  for (const char* const yes : {"1", "true", "True", "t", "yes"})
    if (text == yes) return true;
  for (const char* const no : {"0", "false", "False", "f", "no"})
    if (text == no) return false;
  throw Error(ErrorKind::usage, fmt::format("{} is \"{}\", must be 0 or 1", name, text));
}

bool read_tf32(const Environment& environment) {
  return read_switch(environment, kTf32, "0") && environment.get_or(kTf32Override, "1") != "0";
}

// Matrix units want the channels of a pixel beside each other; the usual units are faster with planes.
bool read_channels_last(const Environment& environment, bool matrix_units) {
  const std::string text = environment.get_or(kLayout, matrix_units ? "nhwc" : "nchw");
  if (text != "nchw" && text != "nhwc")
    throw Error(ErrorKind::usage, fmt::format("{} is \"{}\", must be nchw or nhwc", kLayout, text));
  return text == "nhwc";
}

// Where ranks would not work on the same part of their gradients in each collective.
std::string why_not_registered(const job::StrategySpec& strategy) {
  const bool same = !strategy.sharding && !strategy.pipeline && !strategy.use_hierarchical_allreduce &&
                    strategy.build_strategy.reduce_strategy == job::ReduceStrategy::AllReduce;
  return same ? ""
              : fmt::format(
                    "{}=1 has no effect with sharding, pipeline, use_hierarchical_allreduce and "
                    "reduce_strategy=Reduce",
                    kRegister);
}

void refuse_share_and_registration(double share) {
  if (share > 0)
    throw Error(
        ErrorKind::usage,
        fmt::format(
            "found {0}=1 and {1}={2}, wanted one of them: NCCL registers only memory that it takes itself",
            kRegister, kMemoryFraction, share));
}

int read_index(const std::string& device) {
  constexpr std::string_view kPrefix = "cuda:";
  int index = -1;
  if (device.starts_with(kPrefix))
    std::from_chars(device.data() + kPrefix.size(), device.data() + device.size(), index);
  if (index < 0)
    throw Error(ErrorKind::config, fmt::format("device is \"{}\", must be cpu or cuda:INDEX", device));
  return index;
}

}  // namespace

std::string cuda_plugin_path() {
  Dl_info library{};
  ::dladdr(reinterpret_cast<void*>(&load_plugin), &library);
  const std::filesystem::path ours = library.dli_fname == nullptr ? "" : library.dli_fname;
  return (ours.parent_path() / "libfleetrun_cuda.so").string();
}

const Plugin& load_plugin(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw refuse(fmt::format("this installation has no CUDA plug-in ({})", path));
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)  // NOLINTNEXTLINE(concurrency-mt-unsafe): each thread has its own message
    throw refuse(fmt::format("the plug-in cannot be loaded: {}", ::dlerror()));
  const auto entry = reinterpret_cast<PluginEntry>(::dlsym(library, kPluginEntry));
  if (entry == nullptr)
    throw refuse(fmt::format("{} is not a plug-in: it has no function {}", path, kPluginEntry));
  const Plugin& plugin = *entry();
  if (plugin.abi != kPluginAbi)
    throw refuse(fmt::format("{} has plug-in ABI {}, this fleetrun wants {}", path, plugin.abi, kPluginAbi));
  return plugin;
}

PluginOptions plugin_options(const std::string& device, const job::StrategySpec& strategy,
                             const Environment& environment) {
  constexpr std::size_t kMegabyte = 1024 * 1024;
  const bool tf32 = read_tf32(environment), registers = read_switch(environment, kRegister, "0");
  const double share = read_memory_fraction(environment);
  const std::string problem = registers ? why_not_registered(strategy) : "";
  if (registers && problem.empty()) refuse_share_and_registration(share);
  return {.index = read_index(device),
          .memory_fraction = share,
          .exhaustive_search = strategy.cudnn_exhaustive_search,
          .deterministic = read_flag(environment, kDeterministic, true),
          .workspace_limit = static_cast<std::size_t>(strategy.conv_workspace_size_limit) * kMegabyte,
          .persistent_batch_norm = strategy.cudnn_batchnorm_spatial_persistent,
          // A stage that waited until its neighbour has what it sends would wait for one that sends, too.
          .wait_for_collectives = strategy.sync_nccl_allreduce && !strategy.pipeline,
          .tf32 = tf32,
          .channels_last = read_channels_last(environment, tf32 || strategy.amp),
          .record_steps = read_switch(environment, kGraphs, "1"),
          .register_buffers = registers && problem.empty(),
          .why_not_registered = problem,
          .image_library = environment.get_or(kNvjpeg, ""),
          .activity_library = environment.get_or(kCupti, "")};
}

}  // namespace fleetrun::runtime
