// A CUDA that works on the host, for the plug-in's own code: streams are queues, their work is done as late as CUDA
// allows, when somebody waits for it; other streams go on only as far as an event makes them. Memory of the device is
// known by its bounds, and what lies after each piece must stay as it was.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "cuda/on_host/counts.h"

namespace fleetrun::cuda::on_host {

std::recursive_mutex& machine();  // one thread at a time is in this CUDA

Counts& counts();

using Kind = std::int64_t Counts::*;  // of work: where it is counted

// The same work, which tells CUPTI's list when it was done if somebody watches work of this kind (cupti.cpp).
std::function<bool()> watched(Kind kind, std::function<bool()> work);

// Gives work to a stream: it is begun again until it says that it is done.
void give_until_done(cudaStream_t stream, Kind kind, std::function<bool()> work);

// If the stream is recorded, the recording keeps this for as long as it lives. Returns whether it is recorded.
bool keep_in_recording(cudaStream_t stream, std::shared_ptr<void> kept);

// For work that waits for another process: returns false, which says that it is not done. `looks` counts how often it was
// not done.
bool wait_for_other_process(int& looks);

// False with FLEETRUN_ON_HOST_COMPUTE=0: kernels and the calls of cuDNN and cuBLASLt are checked and counted, and do nothing.
bool computes();

// Gives work that is done at once.
template <typename Work>
void give(cudaStream_t stream, Kind kind, Work work) {
  give_until_done(stream, kind, [work = std::move(work)] {
    work();
    return true;
  });
}

// Gives the work of a kernel, or of a library that computes.
template <typename Work>
void give_kernel(cudaStream_t stream, Kind kind, Work work) {
  if (computes()) return give(stream, kind, std::move(work));
  give(stream, kind, [] {});
}

// Ends the process with these words: the plug-in did what a GPU would not forgive.
[[noreturn]] void refuse(const std::string& what);

// Refuses a range that is not inside one piece of device memory (or of pinned memory, which a device can reach).
void expect_reachable(const void* data, std::size_t bytes, const char* who);

}  // namespace fleetrun::cuda::on_host
