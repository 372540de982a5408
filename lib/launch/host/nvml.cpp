#include "launch/host/nvml.h"

#include <dlfcn.h>

#include <array>

namespace fleetrun::launch {
namespace {

// From nvml.h of the driver; the layouts are part of its binary interface.
using NvmlDevice = void*;
using Result = int;
constexpr Result kSuccess = 0;
constexpr unsigned kMostProcesses = 64;  // of one GPU
constexpr unsigned kTextSize = 96;  // bytes; NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE

struct Memory {
  unsigned long long total, free, used;
};
struct ProcessInfo {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

class Nvml {
 public:
  explicit Nvml(const std::string& library) : handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) return;
    find("nvmlInit_v2", init_);
    find("nvmlShutdown", shutdown_);
    find("nvmlDeviceGetCount_v2", count_);
    find("nvmlDeviceGetHandleByIndex_v2", device_);
    find("nvmlDeviceGetUUID", uuid_);
    find("nvmlDeviceGetName", name_);
    find("nvmlDeviceGetMemoryInfo", memory_);
    find("nvmlDeviceGetComputeRunningProcesses_v3", processes_);
    find("nvmlDeviceGetTotalEccErrors", ecc_errors_);
    find("nvmlDeviceGetCurrentClocksThrottleReasons", throttle_);
    find("nvmlDeviceGetMaxMigDeviceCount", most_migs_);
    find("nvmlDeviceGetMigDeviceHandleByIndex", mig_);
    ready_ = init_ != nullptr && count_ != nullptr && device_ != nullptr && uuid_ != nullptr &&
             init_() == kSuccess;
  }
  ~Nvml() {
    if (ready_ && shutdown_ != nullptr) shutdown_();
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::optional<std::vector<GpuFact>> read() const {
    unsigned count = 0;
    if (!ready_ || count_(&count) != kSuccess) return std::nullopt;
    std::vector<GpuFact> gpus;
    for (unsigned i = 0; i < count; ++i) {
      NvmlDevice device = nullptr;
      gpus.push_back(device_(i, &device) == kSuccess ? read(device) : GpuFact());
    }
    return gpus;
  }

 private:
  template <typename Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
  }

  static std::string text(NvmlDevice device, Result (*function)(NvmlDevice, char*, unsigned)) {
    std::array<char, kTextSize> buffer{};
    return function != nullptr && function(device, buffer.data(), kTextSize) == kSuccess ? buffer.data() : "";
  }

  // A GPU without ECC has no errors.
  void read_health(NvmlDevice device, GpuFact& gpu) const {
    constexpr unsigned kUncorrected = 1, kSinceLoaded = 0;
    unsigned long long errors = 0, reasons = 0;
    if (ecc_errors_ != nullptr && ecc_errors_(device, kUncorrected, kSinceLoaded, &errors) == kSuccess)
      gpu.ecc_errors = errors;
    if (throttle_ != nullptr && throttle_(device, &reasons) == kSuccess) gpu.throttle = reasons;
  }

  GpuFact read(NvmlDevice device) const {
    GpuFact gpu{.uuid = text(device, uuid_), .name = text(device, name_)};
    Memory memory{};
    if (memory_ != nullptr && memory_(device, &memory) == kSuccess) {
      gpu.memory_used = memory.used;
      gpu.memory_total = memory.total;
    }
    std::array<ProcessInfo, kMostProcesses> processes{};
    unsigned count = kMostProcesses;
    if (processes_ != nullptr && processes_(device, &count, processes.data()) == kSuccess)
      for (unsigned i = 0; i < count; ++i) gpu.holders.push_back(static_cast<pid_t>(processes.at(i).pid));
    read_health(device, gpu);
    unsigned migs = 0;
    if (most_migs_ == nullptr || mig_ == nullptr || most_migs_(device, &migs) != kSuccess) return gpu;
    for (unsigned i = 0; i < migs; ++i) {
      NvmlDevice mig = nullptr;
      if (mig_(device, i, &mig) == kSuccess) gpu.migs.push_back(text(mig, uuid_));  // places may be empty
    }
    return gpu;
  }

  void* handle_ = nullptr;
  bool ready_ = false;
  Result (*init_)() = nullptr;
  Result (*shutdown_)() = nullptr;
  Result (*count_)(unsigned*) = nullptr;
  Result (*device_)(unsigned, NvmlDevice*) = nullptr;
  Result (*uuid_)(NvmlDevice, char*, unsigned) = nullptr;
  Result (*name_)(NvmlDevice, char*, unsigned) = nullptr;
  Result (*memory_)(NvmlDevice, Memory*) = nullptr;
  Result (*processes_)(NvmlDevice, unsigned*, ProcessInfo*) = nullptr;
  Result (*ecc_errors_)(NvmlDevice, unsigned, unsigned, unsigned long long*) = nullptr;
  Result (*throttle_)(NvmlDevice, unsigned long long*) = nullptr;
  Result (*most_migs_)(NvmlDevice, unsigned*) = nullptr;
  Result (*mig_)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
};

}  // namespace

std::optional<std::vector<GpuFact>> read_nvml(const std::string& library) { return Nvml(library).read(); }

}  // namespace fleetrun::launch
