// NVIDIA's management library: what the driver says about the GPUs of this machine. It is part of the driver and loaded at run time. Its header
// may not be installed, so the functions that we call are declared here as nvml.h declares them. A call may take as long as the driver does.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun {

constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

struct GpuFact {
  std::string uuid;               // "GPU-8932f937-..."
  std::string name;               // "NVIDIA H100 80GB HBM3"
  std::vector<std::string> migs;  // names of its MIG devices, as CUDA_VISIBLE_DEVICES takes them
  std::uint64_t memory_used = 0, memory_total = 0;  // bytes
  std::vector<pid_t> holders;                       // processes that compute on it
  std::uint64_t ecc_errors = 0;                     // uncorrected, since the driver was loaded
  std::uint64_t throttle = 0;                       // reasons, a set of bits of NVML
};

// What a GPU does at the moment; -1: the driver does not say.
struct GpuLoad {
  int busy_percent = -1;  // of the last sample period (up to 1 s), in which some kernel ran
  std::int64_t memory_used = -1, memory_total = -1;  // bytes, of all processes
  int celsius = -1;
  std::int64_t milliwatts = -1;

  bool operator==(const GpuLoad&) const = default;
};

class Nvml {
 public:
  explicit Nvml(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // False when the library cannot be loaded, or does not work.
  bool is_ready() const { return ready_; }

  // All GPUs, in the driver's order, which is that of the PCI bus. None if it does not work.
  std::optional<std::vector<GpuFact>> read() const;

  // Of the GPU at this place of the PCI bus, "0000:3B:00.0". If the GPU does not exist, the result is empty.
  std::optional<GpuLoad> read_load(const std::string& bus_id) const;

 private:
  using Device = void*;
  using Result = int;
  struct Memory {
    unsigned long long total, free, used;
  };
  struct ProcessInfo {  // nvmlProcessInfo_v2_t
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
  };
  struct Utilization {
    unsigned gpu, memory;  // percent
  };

  template <typename Function>
  void find(const char* name, Function& function) const;
  static std::string text(Device device, Result (*function)(Device, char*, unsigned));
  void read_health(Device device, GpuFact& gpu) const;
  GpuFact read(Device device) const;

  void* handle_ = nullptr;
  bool ready_ = false;
  Result (*init_)() = nullptr;
  Result (*shutdown_)() = nullptr;
  Result (*count_)(unsigned*) = nullptr;
  Result (*device_)(unsigned, Device*) = nullptr;
  Result (*device_at_)(const char*, Device*) = nullptr;
  Result (*uuid_)(Device, char*, unsigned) = nullptr;
  Result (*name_)(Device, char*, unsigned) = nullptr;
  Result (*memory_)(Device, Memory*) = nullptr;
  Result (*processes_)(Device, unsigned*, ProcessInfo*) = nullptr;
  Result (*ecc_errors_)(Device, unsigned, unsigned, unsigned long long*) = nullptr;
  Result (*throttle_)(Device, unsigned long long*) = nullptr;
  Result (*utilization_)(Device, Utilization*) = nullptr;
  Result (*temperature_)(Device, unsigned, unsigned*) = nullptr;
  Result (*power_)(Device, unsigned*) = nullptr;
  Result (*most_migs_)(Device, unsigned*) = nullptr;
  Result (*mig_)(Device, unsigned, Device*) = nullptr;
};

}  // namespace fleetrun
