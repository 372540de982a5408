#include "cuda/plugin/cuda_device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/environment.h"
#include "base/text/plural.h"
#include "cuda/plugin/cupti_watch.h"
#include "cuda/plugin/image_layout.h"
#include "cuda/plugin/jpeg_decoder.h"
#include "runtime/exec/search_algorithms.h"

namespace fleetrun::cuda {
namespace {

constexpr int kMostCommunicators = 8;

// The host looks at a stream again at once this often, about a millisecond, and then pauses between two looks.
constexpr int kLooksWithoutPause = 1000;
constexpr auto kPause = std::chrono::microseconds(50);

// "13.2" of 13020.
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string runtime_version() {
  int version = 0;
  check(cudaRuntimeGetVersion(&version), "asking for CUDA's version");
  return version_text(version);
}

std::string driver_version() {
  int version = 0;
  check(cudaDriverGetVersion(&version), "asking for the driver's version");
  return version_text(version);
}

std::string compute_capability(int device) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "asking for the GPU's kind");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
        "asking for the GPU's kind");
  return fmt::format("{}.{}", major, minor);
}

class PieceOfPool : public comm::Memory {
 public:
  PieceOfPool(MemoryPool& pool, void* base, std::size_t offset)
      : pool_(pool), offset_(offset), data_(static_cast<std::byte*>(base) + offset) {}
  ~PieceOfPool() override { pool_.give_back(offset_); }
  void* data() override { return data_; }

 private:
  MemoryPool& pool_;
  std::size_t offset_;
  void* data_;
};

class OwnMemory : public comm::Memory {
 public:
  explicit OwnMemory(std::size_t bytes) {
    void* data = nullptr;
    check(cudaMalloc(&data, std::max<std::size_t>(bytes, 1)),
          fmt::format("getting {} bytes of device memory", bytes));
    data_.reset(data);
  }
  void* data() override { return data_.get(); }

 private:
  std::unique_ptr<void, Destroy<cudaFree>> data_;
};

// Of the host, at one address for host and device.
class PinnedMemory : public comm::Memory {
 public:
  explicit PinnedMemory(std::size_t bytes) {
    void* data = nullptr;
    check(cudaHostAlloc(&data, std::max<std::size_t>(bytes, 1), cudaHostAllocPortable | cudaHostAllocMapped),
          fmt::format("getting {} bytes of pinned memory", bytes));
    data_.reset(data);
    std::memset(data, 0, bytes);
  }
  void* data() override { return data_.get(); }

 private:
  std::unique_ptr<void, Destroy<cudaFreeHost>> data_;
};

class CudaEvent : public runtime::Event {
 public:
  explicit CudaEvent(CudaDevice& device) : device_(device) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
    event_.reset(event);
  }
  void record(int stream) override {
    check(cudaEventRecord(event_.get(), device_.stream(stream)), "recording an event");
  }
  void hold_back(int stream) override {
    check(cudaStreamWaitEvent(device_.stream(stream), event_.get(), 0), "holding back a stream");
  }
  void wait() override { device_.wait_for(event_.get()); }

 private:
  CudaDevice& device_;
  std::unique_ptr<CUevent_st, Destroy<cudaEventDestroy>> event_;
};

// Collectives are short and others wait for them: their streams go first.
cudaStream_t make_stream(int number) {
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for the priorities of streams");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                     number >= runtime::kFirstCommunicatorStream ? highest : lowest),
        "making a stream");
  return stream;
}

void choose_gpu(int index) {
  int count = 0;
  const cudaError_t problem = cudaGetDeviceCount(&count);
  if (problem != cudaSuccess)
    throw Error(ErrorKind::config, fmt::format("cuda:{}: {}", index, cudaGetErrorString(problem)),
                "choose --device=cpu");
  if (index >= count)
    throw Error(ErrorKind::config, fmt::format("cuda:{} is not there; this process sees {}", index,
                                               plural(count, "CUDA device")));
  check(cudaSetDevice(index), fmt::format("choosing cuda:{}", index));
}

}  // namespace

// Leaves the list of those that are polled when it ends.
class CudaDevice::Watched : public DeviceCommunicator {
 public:
  Watched(CudaDevice& device, std::unique_ptr<CollectiveLibrary> library,
          const DeviceCommunicatorOptions& options)
      : DeviceCommunicator(std::move(library), options), device_(device) {
    device_.communicators_.push_back(this);
  }
  ~Watched() override { std::erase(device_.communicators_, this); }

 private:
  CudaDevice& device_;
};

// A recorded step. Its nodes keep the priorities of their streams, so that collectives go first.
class CudaDevice::CudaGraph : public runtime::Recording {
 public:
  // What a communicator does in it.
  struct Part {
    DeviceCommunicator* communicator;
    std::vector<comm::Collective> collectives;
  };

  CudaGraph(CudaDevice& device, cudaGraph_t graph, std::vector<Part> parts)
      : device_(device), parts_(std::move(parts)) {
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, graph, cudaGraphInstantiateFlagUseNodePriority),
          "preparing a CUDA graph");
    graph_.reset(made);
    const std::lock_guard lock(device_.graphs_mutex_);
    device_.graphs_.push_back(this);
  }
  ~CudaGraph() override {
    const std::lock_guard lock(device_.graphs_mutex_);
    std::erase(device_.graphs_, this);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void replay() override {
    if (!graph_)
      throw Error(ErrorKind::temporary, "a recorded step cannot be repeated: a communicator was given up");
    check(cudaGraphLaunch(graph_.get(), device_.stream(runtime::kComputeStream)), "starting a CUDA graph");
    for (const Part& part : parts_) part.communicator->repeat(part.collectives);
  }
  void drop() { graph_.reset(); }

 private:
  CudaDevice& device_;
  const std::vector<Part> parts_;
  std::unique_ptr<CUgraphExec_st, Destroy<cudaGraphExecDestroy>> graph_;
};

CudaDevice::CudaDevice(const runtime::PluginOptions& options) : options_(options), kernels_(cuda_kernels()) {
  choose_gpu(options.index);
  take_share(options.memory_fraction);
  for (int i = 0; i < runtime::kFirstCommunicatorStream + kMostCommunicators; ++i)
    streams_.emplace_back(make_stream(i));
  cudnnHandle_t cudnn = nullptr;
  check(cudnnCreate(&cudnn), "starting cuDNN");
  cudnn_.reset(cudnn);
  check(cudnnSetStream(cudnn, stream(runtime::kComputeStream)), "giving cuDNN its stream");
  cublasLtHandle_t cublas = nullptr;
  check(cublasLtCreate(&cublas), "starting cuBLASLt");
  cublas_.reset(cublas);
  if (options.exhaustive_search) keep_algorithms();
}

// Keeps the results on disk, so that the next start on this host and its other ranks need not search.
void CudaDevice::keep_algorithms() {
  try {
    algorithms_.keep_in(std::make_unique<runtime::AlgorithmCache>(
        runtime::cache_folder(Environment::of_this_process()), runtime::place_of(*this)));
  } catch (const Error& error) {
    algorithms_.add_problem(error.message());
  }
}

CudaDevice::~CudaDevice() = default;

std::string CudaDevice::version() const {
  return fmt::format("CUDA {}, cuDNN {}, cuBLASLt {}, NCCL {}, compute capability {}, {}, {}",
                     runtime_version(), cudnnGetVersion(), cublasLtGetVersion(), nccl_version(),
                     compute_capability(options_.index), options_.tf32 ? "TF32" : "f32",
                     options_.channels_last ? "NHWC" : "NCHW");
}

std::string CudaDevice::memory_of_gradients() const {
  return options_.register_buffers ? "registered with NCCL (FLEETRUN_NCCL_REGISTER=1)" : "not registered";
}

// GPUs that are equal in these three figures are taken to be equally fast.
std::string CudaDevice::hardware() const {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options_.index),
        "asking for the GPU's size");
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  return fmt::format("GPU of compute capability {} with {} multiprocessors and {} MiB",
                     compute_capability(options_.index), multiprocessors, total >> 20U);
}

std::string CudaDevice::bus_id() const {
  std::array<char, 32> text{};
  const bool known =
      cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), options_.index) == cudaSuccess;
  return known ? text.data() : "";
}

std::vector<std::string> CudaDevice::choices() const {
  std::vector<std::string> lines;
  for (const std::string& problem : algorithms_.problems())
    lines.push_back("warning: the algorithms of convolutions: " + problem);
  if (options_.exhaustive_search)
    lines.push_back(fmt::format("convolutions: #searched={}, #cache hits={}", algorithms_.searches(),
                                algorithms_.hits()));
  if (const std::size_t bytes = nccl_buffers_.bytes(); bytes > 0)
    lines.push_back(fmt::format("gradients: {:.1f} MB of memory that NCCL may register",
                                static_cast<double>(bytes) / 1e6));
  if (!options_.why_not_registered.empty()) lines.push_back("gradients: " + options_.why_not_registered);
  for (const std::string& line : {image_decoder_, watch_})
    if (!line.empty()) lines.push_back(line);
  return lines;
}

// The first line is that of Paddle (paddle/phi/backends/gpu/gpu_resources.cc), which people and scripts look for.
std::string CudaDevice::notice() const {
  return fmt::format(
      "Please NOTE: device: {0}, GPU Compute Capability: {1}, Driver API Version: {2}, Runtime API Version: {3}\n"
      "device: {0}, cuDNN Version: {4}.{5}, cuBLASLt {6}, NCCL {7}, {8}, {9}\n",
      options_.index, compute_capability(options_.index), driver_version(), runtime_version(),
      cudnnGetVersion() / 10000, cudnnGetVersion() % 10000 / 100, cublasLtGetVersion(), nccl_version(),
      options_.tf32 ? "TF32" : "f32", options_.channels_last ? "NHWC" : "NCHW");
}

void CudaDevice::take_share(double fraction) {
  if (fraction <= 0) return;
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the free memory");
  const auto bytes = static_cast<std::size_t>(static_cast<double>(free) * fraction);
  void* share = nullptr;
  check(cudaMalloc(&share, bytes), fmt::format("taking {} of {} free bytes of device memory", bytes, free));
  share_.reset(share);
  pool_ = std::make_unique<MemoryPool>(bytes);
}

std::size_t CudaDevice::free_bytes() const {
  if (pool_) return pool_->largest_free();
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the free memory");
  return free;
}

std::unique_ptr<comm::Memory> CudaDevice::allocate(std::size_t bytes) { return zeroed(take(bytes), bytes); }

std::unique_ptr<comm::Memory> CudaDevice::allocate_for_collectives(std::size_t bytes) {
  return options_.register_buffers ? zeroed(nccl_buffers_.allocate(bytes), bytes) : allocate(bytes);
}

std::unique_ptr<comm::Memory> CudaDevice::take(std::size_t bytes) {
  if (!pool_) return std::make_unique<OwnMemory>(bytes);
  const auto offset = pool_->take(bytes);
  if (!offset)
    throw Error(
        ErrorKind::os,
        fmt::format("{} bytes do not fit into the device memory that was taken at the start; {} are free",
                    bytes, pool_->largest_free()),
        "FLAGS_fraction_of_gpu_memory_to_use says how much is taken");
  return std::make_unique<PieceOfPool>(*pool_, share_.get(), *offset);
}

std::unique_ptr<comm::Memory> CudaDevice::zeroed(std::unique_ptr<comm::Memory> memory, std::size_t bytes) {
  for (const auto& each : streams_)
    wait_for(each.get());  // who had a piece of the pool may still be at work in it
  const cudaStream_t compute = stream(runtime::kComputeStream);
  check(cudaMemsetAsync(memory->data(), 0, bytes, compute), "zeroing memory");
  wait_for(compute);
  return memory;
}

void CudaDevice::to_plain(const runtime::Value& value, const void* data, void* plain) {
  if (!is_channels_last(value.layout)) return download(data, plain, value.bytes());
  std::vector<float> last(value.bytes() / sizeof(float));
  download(data, last.data(), value.bytes());
  to_channels_first(pixels_of(value.shape), last.data(), static_cast<float*>(plain));
}

void CudaDevice::from_plain(const runtime::Value& value, const void* plain, void* data) {
  std::vector<float> last;
  if (is_channels_last(value.layout)) {
    last.resize(value.bytes() / sizeof(float));
    to_channels_last(pixels_of(value.shape), static_cast<const float*>(plain), last.data());
  }
  synchronise();
  upload(last.empty() ? plain : last.data(), data, value.bytes(), runtime::kComputeStream);
  synchronise();
}

void CudaDevice::enter_thread(int) {
  check(cudaSetDevice(options_.index), "choosing the device of a thread");
}

std::unique_ptr<runtime::DeviceJpegDecoder> CudaDevice::make_jpeg_decoder() {
  const NvjpegLibrary& library = NvjpegLibrary::load(options_.image_library);
  image_decoder_ = fmt::format("images: nvJPEG {} decodes JPEG files", library.version());
  return make_nvjpeg_decoder(*this, library);
}

std::unique_ptr<runtime::ActivityWatch> CudaDevice::make_activity_watch() {
  std::string problem;
  auto watch = make_cupti_watch(options_.activity_library, problem);
  watch_ =
      watch ? "trace: CUPTI sees the kernels of each op"
            : fmt::format(
                  "trace: the times of ops without those of their kernels, because CUPTI cannot be used: {}",
                  problem);
  return watch;
}

std::unique_ptr<comm::Communicator> CudaDevice::make_communicator(const comm::Party& party, int index) {
  if (index >= kMostCommunicators)
    throw Error(ErrorKind::config, fmt::format("communicator {} of a GPU is wanted, there are at most {}",
                                               index + 1, kMostCommunicators));
  auto library = make_nccl(*this, runtime::kFirstCommunicatorStream + index);
  return std::make_unique<Watched>(
      *this, std::move(library),
      DeviceCommunicatorOptions{
          .party = party, .name = std::to_string(index), .wait = options_.wait_for_collectives});
}

std::unique_ptr<runtime::Event> CudaDevice::make_event() { return std::make_unique<CudaEvent>(*this); }

std::unique_ptr<comm::Memory> CudaDevice::allocate_staging(std::size_t bytes) {
  return std::make_unique<PinnedMemory>(bytes);
}

void CudaDevice::upload(const void* staging, void* data, std::size_t bytes, int to) {
  check(cudaMemcpyAsync(data, staging, bytes, cudaMemcpyHostToDevice, stream(to)), "copying to the device");
}

void CudaDevice::download(const void* data, void* host, std::size_t bytes) {
  const cudaStream_t compute = stream(runtime::kComputeStream);
  wait_for(
      compute);  // a copy to memory that is not pinned would wait by itself, without looking at collectives
  check(cudaMemcpyAsync(host, data, bytes, cudaMemcpyDeviceToHost, compute), "copying from the device");
  wait_for(compute);
  check_labels();
}

void CudaDevice::download_all(std::span<const runtime::Download> downloads) {
  const cudaStream_t compute = stream(runtime::kComputeStream);
  for (const runtime::Download& each : downloads)
    check(cudaMemcpyAsync(each.staging, each.data, each.bytes, cudaMemcpyDeviceToHost, compute),
          "copying from the device");
  wait_for(compute);
  check_labels();
}

void CudaDevice::synchronise() {
  for (const auto& each : streams_) wait_for(each.get());
  check_labels();
}

// Relaxed: other threads, and the copies of the next batch, go on meanwhile.
void CudaDevice::begin_recording() {
  check(cudaStreamBeginCapture(stream(runtime::kComputeStream), cudaStreamCaptureModeRelaxed),
        "beginning a CUDA graph");
  is_recording_ = true;
  for (DeviceCommunicator* communicator : communicators_) communicator->begin_recording();
}

std::unique_ptr<runtime::Recording> CudaDevice::end_recording() {
  std::vector<CudaGraph::Part> parts;
  for (DeviceCommunicator* communicator : communicators_) {
    std::vector<comm::Collective> collectives = communicator->end_recording();
    if (!collectives.empty()) parts.push_back({communicator, std::move(collectives)});
  }
  is_recording_ = false;
  cudaGraph_t made = nullptr;
  check(cudaStreamEndCapture(stream(runtime::kComputeStream), &made), "ending a CUDA graph");
  const std::unique_ptr<CUgraph_st, Destroy<cudaGraphDestroy>> graph(made);
  return std::make_unique<CudaGraph>(*this, graph.get(), std::move(parts));
}

void CudaDevice::drop_recordings() {
  cudaGraph_t unfinished = nullptr;
  if (is_recording_ && cudaStreamEndCapture(stream(runtime::kComputeStream), &unfinished) == cudaSuccess)
    cudaGraphDestroy(unfinished);
  is_recording_ = false;
  const std::lock_guard lock(graphs_mutex_);
  for (CudaGraph* graph : graphs_) graph->drop();
}

void CudaDevice::wait_for(cudaStream_t stream) {
  wait_until_done([stream] { return cudaStreamQuery(stream); });
}

void CudaDevice::wait_for(cudaEvent_t event) {
  wait_until_done([event] { return cudaEventQuery(event); });
}

template <typename State>
void CudaDevice::wait_until_done(const State& state) {
  for (int looks = 0;; ++looks) {
    const cudaError_t now = state();
    if (now != cudaErrorNotReady) return check(now, "running on the device");
    cudaGetLastError();  // some versions of CUDA keep "not ready" as the last error
    for (DeviceCommunicator* communicator : communicators_) communicator->poll();
    if (looks < kLooksWithoutPause)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
  }
}

BadLabel* CudaDevice::watch_labels(const std::string& op, int classes) {
  labels_.push_back({op, classes, allocate_staging(sizeof(BadLabel))});
  return static_cast<BadLabel*>(labels_.back().memory->data());
}

void CudaDevice::check_labels() {
  for (const LabelWatch& watch : labels_) {
    auto* const bad = static_cast<BadLabel*>(watch.memory->data());
    if (bad->seen == 0) continue;
    bad->seen = 0;
    throw Error(ErrorKind::data, fmt::format("{}: sample {} of the batch has label {}, there are {} classes",
                                             watch.op, bad->sample, bad->label, watch.classes));
  }
}

CudaDevice& as_cuda(runtime::Device& device) {
  if (auto* cuda = dynamic_cast<CudaDevice*>(&device)) return *cuda;
  throw Error(ErrorKind::internal, "a CUDA kernel was asked for device " + device.name());
}

}  // namespace fleetrun::cuda
