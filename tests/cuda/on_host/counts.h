// What a plug-in has asked of this CUDA so far. A test that has loaded the plug-in finds them by the name of the function.
#pragma once
#include <cstdint>

namespace fleetrun::cuda::on_host {

// Work that is recorded into a graph counts as `recorded`. Later the graph counts as one launch each time.
struct Counts {
  std::int64_t kernels = 0;                      // of our own
  std::int64_t cudnn = 0, cublas = 0, nccl = 0;  // calls that give work to a stream
  std::int64_t nvjpeg = 0;                       // the same
  std::int64_t registered = 0;                   // of the calls of NCCL: those on memory registered with it
  std::int64_t fills = 0;                        // of memory of the device
  std::int64_t moves = 0;                        // from memory of the device to other memory of the device
  std::int64_t uploads = 0, uploaded_bytes = 0;  // to the device
  std::int64_t downloads = 0, downloaded_bytes = 0;  // to the host
  std::int64_t recorded = 0;                         // pieces of work of the kinds above
  std::int64_t graph_launches = 0;
  std::int64_t waits = 0;        // of the host, for a stream or an event that has something left to do
  std::int64_t allocations = 0;  // of memory of the device, and of pinned memory of the host
};

constexpr const char* kCountsEntry = "fleetrun_on_host_counts";
using CountsEntry = const Counts* (*)();  // extern "C"

}  // namespace fleetrun::cuda::on_host
