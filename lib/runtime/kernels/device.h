// A device: memory, and one kernel per op. Everything above this line does not know which device it is.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/number/dtype.h"
#include "comm/collective/communicator.h"
#include "comm/rendezvous/exchange.h"
#include "runtime/data/decode/device_jpeg.h"
#include "runtime/graph/program.h"
#include "runtime/kernels/activity_watch.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/streams.h"

namespace fleetrun::runtime {

// Gradients that travel together start at multiples of Device::gradient_alignment: 4096 bytes on a CPU, 256 on a GPU
// (paddle/fluid/platform/device_memory_aligment.cc).
constexpr std::size_t kMostGradientAlignment = 4096;

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "CPU", "CUDA": as errors say it
  // Of the libraries that its kernels call; equal where their results are.
  virtual std::string version() const = 0;
  // The kind of memory that gradients lie in. It must be the same on all ranks. "": this device has only one kind.
  virtual std::string memory_of_gradients() const { return ""; }
  virtual std::string hardware() const { return name(); }  // what their speed depends on besides
  // Where a GPU is on the PCI bus, "0000:3B:00.0"; "": it is none, or nobody knows.
  virtual std::string bus_id() const { return ""; }
  virtual std::string notice() const { return ""; }  // lines for the log of a rank that uses it
  // Lines for the log about how its kernels were chosen, once they are made.
  virtual std::vector<std::string> choices() const { return {}; }
  virtual const KernelTable& kernels() const = 0;
  virtual std::unique_ptr<comm::Memory> allocate(std::size_t bytes) = 0;  // 64-byte aligned, zeroed

  virtual std::size_t gradient_alignment() const { return kMostGradientAlignment; }

  // In which its kernels compute besides f32; the one that strategy.amp takes first. Empty: none.
  virtual std::vector<DType> narrow_types() const { return {}; }

  // Between this device's layout of a value and plain host memory (count_of(value.shape) elements).
  virtual void to_plain(const Value& value, const void* data, void* plain) = 0;
  virtual void from_plain(const Value& value, const void* plain, void* data) = 0;

  // How many of `wanted` compute threads an op gets. Throws Error(config) when they could not work.
  virtual int largest_team(int wanted) const { return wanted; }

  // Called by each executor thread before it makes or runs kernels: its share of the compute threads.
  virtual void enter_thread(int team) = 0;

  // Null: kernels are done when they return, and the device's memory is the host's.
  virtual Streams* streams() { return nullptr; }

  // For a trace. Null: nothing sees what this device does by itself; choices() may say why.
  virtual std::unique_ptr<ActivityWatch> make_activity_watch() { return nullptr; }

  // Decodes images for one thread that loads them (data.use_dali). Throws Error(config) if the device or its library cannot,
  // Error(os) without memory.
  virtual std::unique_ptr<DeviceJpegDecoder> make_jpeg_decoder();

  // For collectives on this device's memory (and the host's): number `index` works on its own stream.
  // Null: the host's communicators serve. Every rank calls it alike.
  virtual std::unique_ptr<comm::Communicator> make_communicator(const comm::Party&, int) { return nullptr; }
};

struct CpuOptions {
  // With AVX-512, making a kernel that oneDNN has only a slow reference implementation for is an
  // Error(internal) that names the op. FLEETRUN_REFUSE_REF=1 in the environment says the same.
  bool refuse_reference = false;
};

// oneDNN on this machine's processor.
std::unique_ptr<Device> make_cpu_device(const CpuOptions& options = {});

}  // namespace fleetrun::runtime
