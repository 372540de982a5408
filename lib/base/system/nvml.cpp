#include "base/system/nvml.h"

#include <dlfcn.h>

#include <array>

namespace fleetrun {
namespace {

constexpr int kSuccess = 0;
constexpr unsigned kMostProcesses = 64;  // of one GPU
constexpr unsigned kTextSize = 96;  // bytes; NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE
constexpr unsigned kSensorOfGpu = 0;  // NVML_TEMPERATURE_GPU

}  // namespace

template <typename Function>
void Nvml::find(const char* name, Function& function) const {
  function = reinterpret_cast<Function>(::dlsym(handle_, name));
}

Nvml::Nvml(const std::string& library) : handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) return;
  find("nvmlInit_v2", init_);
  find("nvmlShutdown", shutdown_);
  find("nvmlDeviceGetCount_v2", count_);
  find("nvmlDeviceGetHandleByIndex_v2", device_);
  find("nvmlDeviceGetHandleByPciBusId_v2", device_at_);
  find("nvmlDeviceGetUUID", uuid_);
  find("nvmlDeviceGetName", name_);
  find("nvmlDeviceGetMemoryInfo", memory_);
  find("nvmlDeviceGetComputeRunningProcesses_v3", processes_);
  find("nvmlDeviceGetTotalEccErrors", ecc_errors_);
  find("nvmlDeviceGetCurrentClocksThrottleReasons", throttle_);
  find("nvmlDeviceGetUtilizationRates", utilization_);
  find("nvmlDeviceGetTemperature", temperature_);
  find("nvmlDeviceGetPowerUsage", power_);
  find("nvmlDeviceGetMaxMigDeviceCount", most_migs_);
  find("nvmlDeviceGetMigDeviceHandleByIndex", mig_);
  ready_ =
      init_ != nullptr && count_ != nullptr && device_ != nullptr && uuid_ != nullptr && init_() == kSuccess;
}

Nvml::~Nvml() {
  if (ready_ && shutdown_ != nullptr) shutdown_();
  if (handle_ != nullptr) ::dlclose(handle_);
}

std::optional<std::vector<GpuFact>> Nvml::read() const {
  unsigned count = 0;
  if (!ready_ || count_(&count) != kSuccess) return std::nullopt;
  std::vector<GpuFact> gpus;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    gpus.push_back(device_(i, &device) == kSuccess ? read(device) : GpuFact());
  }
  return gpus;
}

std::optional<GpuLoad> Nvml::read_load(const std::string& bus_id) const {
  Device device = nullptr;
  if (!ready_ || device_at_ == nullptr || device_at_(bus_id.c_str(), &device) != kSuccess)
    return std::nullopt;
  GpuLoad load;
  Utilization use{};
  if (utilization_ != nullptr && utilization_(device, &use) == kSuccess)
    load.busy_percent = static_cast<int>(use.gpu);
  Memory memory{};
  if (memory_ != nullptr && memory_(device, &memory) == kSuccess) {
    load.memory_used = static_cast<std::int64_t>(memory.used);
    load.memory_total = static_cast<std::int64_t>(memory.total);
  }
  unsigned celsius = 0, milliwatts = 0;
  if (temperature_ != nullptr && temperature_(device, kSensorOfGpu, &celsius) == kSuccess)
    load.celsius = static_cast<int>(celsius);
  if (power_ != nullptr && power_(device, &milliwatts) == kSuccess) load.milliwatts = milliwatts;
  return load;
}

std::string Nvml::text(Device device, Result (*function)(Device, char*, unsigned)) {
  std::array<char, kTextSize> buffer{};
  return function != nullptr && function(device, buffer.data(), kTextSize) == kSuccess ? buffer.data() : "";
}

// A GPU without ECC has no errors.
void Nvml::read_health(Device device, GpuFact& gpu) const {
  constexpr unsigned kUncorrected = 1, kSinceLoaded = 0;
  unsigned long long errors = 0, reasons = 0;
  if (ecc_errors_ != nullptr && ecc_errors_(device, kUncorrected, kSinceLoaded, &errors) == kSuccess)
    gpu.ecc_errors = errors;
  if (throttle_ != nullptr && throttle_(device, &reasons) == kSuccess) gpu.throttle = reasons;
}

GpuFact Nvml::read(Device device) const {
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
    Device mig = nullptr;
    if (mig_(device, i, &mig) == kSuccess) gpu.migs.push_back(text(mig, uuid_));  // places may be empty
  }
  return gpu;
}

}  // namespace fleetrun
