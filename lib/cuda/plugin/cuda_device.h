// A GPU as a device: its memory, streams and events, and the handles of the libraries that work on its compute stream.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cuda/logic/algorithm_cache.h"
#include "cuda/logic/device_communicator.h"
#include "cuda/logic/memory_pool.h"
#include "cuda/plugin/check.h"
#include "cuda/plugin/launch.h"
#include "cuda/plugin/nccl_buffers.h"
#include "runtime/kernels/plugin.h"

namespace fleetrun::cuda {

// More than ten members: a handle for each of the CUDA libraries, and lists of what lives on the device.
class CudaDevice : public runtime::Device, private runtime::Streams {
 public:
  // Throws Error(config) when there is no such GPU.
  explicit CudaDevice(const runtime::PluginOptions& options);
  ~CudaDevice() override;

  std::string name() const override { return "CUDA"; }
  std::vector<DType> narrow_types() const override { return {DType::f16, DType::bf16}; }
  std::string version() const override;
  std::string memory_of_gradients() const override;
  std::string hardware() const override;
  std::string bus_id() const override;
  std::string notice() const override;
  std::vector<std::string> choices() const override;
  const runtime::KernelTable& kernels() const override { return kernels_; }
  std::unique_ptr<comm::Memory> allocate(std::size_t bytes) override;
  // The same, for communicators to register if the options say so.
  std::unique_ptr<comm::Memory> allocate_for_collectives(std::size_t bytes);
  std::size_t gradient_alignment() const override { return 256; }  // bytes
  void to_plain(const runtime::Value& value, const void* data, void* plain) override;
  void from_plain(const runtime::Value& value, const void* plain, void* data) override;
  void enter_thread(int team) override;
  std::unique_ptr<runtime::DeviceJpegDecoder> make_jpeg_decoder() override;
  std::unique_ptr<runtime::ActivityWatch> make_activity_watch() override;
  runtime::Streams* streams() override { return this; }
  std::unique_ptr<comm::Communicator> make_communicator(const comm::Party& party, int index) override;
  // Destroys the CUDA graphs of all recordings, and ends one under way: from now on a replay throws Error(temporary). Any thread may call it,
  // while the thread that records and replays waits.
  void drop_recordings();

  const runtime::PluginOptions& options() const { return options_; }
  bool is_recording() const { return is_recording_; }
  NcclBuffers& nccl_buffers() { return nccl_buffers_; }
  cudaStream_t stream(int stream) const { return streams_.at(static_cast<std::size_t>(stream)).get(); }
  std::size_t free_bytes() const;  // that one more piece of memory may have

  // Until the device has come so far. Throws what became of collectives meanwhile.
  void wait_for(cudaStream_t stream);
  void wait_for(cudaEvent_t event);
  // How long the compute stream takes for what `work` gives to it: the least of some times, in milliseconds.
  float time_of(const std::function<void()>& work);

  // One thread at a time uses the handles.
  std::mutex& libraries() { return libraries_; }
  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  cublasLtHandle_t cublas() const { return cublas_.get(); }
  AlgorithmCache& algorithms() { return algorithms_; }

  // Where a kernel of this op notes a label that is not a class. The host reports it when it next waits for the device.
  BadLabel* watch_labels(const std::string& op, int classes);

 private:
  class Watched;
  class CudaGraph;
  struct LabelWatch {
    std::string op;
    int classes;
    std::unique_ptr<comm::Memory> memory;  // of one BadLabel
  };

  std::unique_ptr<runtime::Event> make_event() override;
  std::unique_ptr<runtime::Stamp> make_stamp() override;
  std::unique_ptr<comm::Memory> allocate_staging(std::size_t bytes) override;
  void upload(const void* staging, void* data, std::size_t bytes, int stream) override;
  void download(const void* data, void* host, std::size_t bytes) override;
  void download_all(std::span<const runtime::Download> downloads) override;
  void synchronise() override;
  bool can_record() const override { return options_.record_steps; }
  void begin_recording() override;
  std::unique_ptr<runtime::Recording> end_recording() override;

  void take_share(double fraction);
  std::unique_ptr<comm::Memory> take(std::size_t bytes);
  std::unique_ptr<comm::Memory> zeroed(std::unique_ptr<comm::Memory> memory, std::size_t bytes);
  void keep_algorithms();
  template <typename State>
  void wait_until_done(const State& state);
  void check_labels();

  const runtime::PluginOptions options_;
  const runtime::KernelTable kernels_;
  std::vector<std::unique_ptr<CUstream_st, Destroy<cudaStreamDestroy>>> streams_;
  std::unique_ptr<cudnnContext, Destroy<cudnnDestroy>> cudnn_;
  std::unique_ptr<cublasLtContext, Destroy<cublasLtDestroy>> cublas_;
  std::unique_ptr<void, Destroy<cudaFree>> share_;  // of memory_fraction
  std::unique_ptr<MemoryPool> pool_;                // of that
  NcclBuffers nccl_buffers_;
  std::mutex libraries_;
  AlgorithmCache algorithms_;
  std::vector<LabelWatch> labels_;
  std::vector<DeviceCommunicator*> communicators_;  // those alive
  std::mutex graphs_mutex_;                         // of the list, and of graphs that are dropped
  std::vector<CudaGraph*> graphs_;                  // those alive
  bool is_recording_ = false;
  std::string image_decoder_;  // a line about what decodes images; "": nothing does
  std::string watch_;          // a line about who sees kernels; "": nobody has asked
};

// The device that a kernel of this plug-in is made for.
CudaDevice& as_cuda(runtime::Device& device);

runtime::KernelTable cuda_kernels();  // cuda_kernels.cpp: one line per op

std::unique_ptr<CollectiveLibrary> make_nccl(CudaDevice& device, int stream);  // nccl_library.cpp
std::string nccl_version();

}  // namespace fleetrun::cuda
