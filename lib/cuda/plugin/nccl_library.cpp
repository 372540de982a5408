// NCCL as a CollectiveLibrary: non-blocking communicators, every call given to one stream. Buffers of the host go
// through memory of the device.
#include <nccl.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "base/error/error.h"
#include "cuda/plugin/cuda_device.h"

namespace fleetrun::cuda {
namespace {

using comm::Collective;

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::u8:
      return ncclUint8;
  }
  throw Error(ErrorKind::internal, "a dtype that NCCL does not know");
}

ncclRedOp_t nccl_op(comm::ReduceOp op) {
  switch (op) {
    case comm::ReduceOp::sum:
      return ncclSum;
    case comm::ReduceOp::max:
      return ncclMax;
    case comm::ReduceOp::min:
      return ncclMin;
  }
  throw Error(ErrorKind::internal, "an operation that NCCL does not know");
}

bool is_on_host(const BufferView& buffer) {
  if (buffer.count == 0) return false;
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, buffer.data), "asking where a buffer lies");
  return attributes.type != cudaMemoryTypeDevice;
}

// A buffer of the host beside its copy on the device; kept from one collective to the next.
class Staged {
 public:
  void* bring(CudaDevice& device, cudaStream_t stream, BufferView buffer) {
    host_ = nullptr;
    if (!is_on_host(buffer)) return buffer.data;
    if (buffer.bytes() > capacity_) {
      memory_ = device.allocate(buffer.bytes());
      capacity_ = buffer.bytes();
    }
    host_ = buffer.data;
    bytes_ = buffer.bytes();
    check(cudaMemcpyAsync(memory_->data(), host_, bytes_, cudaMemcpyHostToDevice, stream),
          "staging a buffer");
    return memory_->data();
  }
  bool used() const { return host_ != nullptr; }
  void take_back(cudaStream_t stream) {
    if (!used()) return;
    check(cudaMemcpyAsync(host_, memory_->data(), bytes_, cudaMemcpyDeviceToHost, stream),
          "staging a buffer");
    check(cudaStreamSynchronize(stream), "staging a buffer");
    host_ = nullptr;
  }

 private:
  std::unique_ptr<comm::Memory> memory_;
  std::size_t capacity_ = 0;
  void* host_ = nullptr;
  std::size_t bytes_ = 0;
};

class NcclLibrary : public CollectiveLibrary {
 public:
  NcclLibrary(CudaDevice& device, int stream)
      : device_(device), number_(stream), stream_(device.stream(stream)) {
    beat_ = device.allocate(sizeof(std::int32_t));
    compute_ = device.streams()->make_event();
    // With 1, its default, NCCL keeps the addresses of memory that collectives in CUDA graphs use, also when that memory has been freed and
    // allocated anew. And the ranks of a host wait for each other while they record, so one that cannot record holds up the others.
    ::setenv("NCCL_GRAPH_REGISTER", "0", 0);
  }
  ~NcclLibrary() override {
    if (comm_ != nullptr) end();
  }

  std::string make_id() override {
    ncclUniqueId id;
    expect(ncclGetUniqueId(&id), "making NCCL's id");
    return {id.internal, sizeof id.internal};
  }

  void begin_join(const std::string& text, int rank, int size) override {
    ncclUniqueId id;
    if (text.size() != sizeof id.internal)
      throw Error(ErrorKind::protocol,
                  fmt::format("NCCL's id has {} bytes, wanted {}", text.size(), sizeof id.internal));
    std::memcpy(id.internal, text.data(), sizeof id.internal);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    note(ncclCommInitRankConfig(&comm_, size, id, rank, &config));
  }

  bool is_for_host(const Collective& collective) override {
    return is_on_host(collective.buffer) || is_on_host(collective.mine);
  }

  void begin(const Collective& collective) override {
    if (!device_.is_recording())
      for (const BufferView& view : {collective.buffer, collective.mine})
        note(device_.nccl_buffers().register_with(comm_, view.data));
    if (failed_) return;
    void* const buffer = buffer_.bring(device_, stream_, collective.buffer);
    void* const mine = mine_.bring(device_, stream_, collective.mine);
    note(call(collective, buffer, mine));
  }

  State calls() override {
    if (failed_) return State::failed;
    ncclResult_t state = ncclSuccess;
    note(ncclCommGetAsyncError(comm_, &state));
    if (state == ncclInProgress) return State::busy;
    note(state);
    return failed_ ? State::failed : State::done;
  }

  State work() override {
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return State::busy;
    if (state == cudaSuccess) return State::done;
    problem_ = cudaGetErrorString(state);
    return State::failed;
  }

  void finish() override {
    buffer_.take_back(stream_);
    mine_.take_back(stream_);
  }

  // ncclCommAbort waits until the recordings with its collectives are destroyed. If a destruction waits for the collectives, it needs
  // the abort. So both go on at once.
  void abort() override {
    if (comm_ == nullptr) return;
    std::thread dropping;
    try {
      dropping = std::thread([this] {
        cudaSetDevice(device_.options().index);
        device_.drop_recordings();
      });
    } catch (const std::system_error&) {  // the system refuses another thread
      device_.drop_recordings();
    }
    device_.nccl_buffers().forget(comm_);
    ncclCommAbort(comm_);
    if (dropping.joinable()) dropping.join();
    comm_ = nullptr;
  }

  std::string problem() override { return problem_; }

  void follow_compute() override {
    compute_->record(runtime::kComputeStream);
    compute_->hold_back(number_);
  }

  std::unique_ptr<comm::Memory> allocate(std::size_t bytes) override {
    return device_.allocate_for_collectives(bytes);
  }

 private:
  ncclResult_t call(const Collective& collective, void* buffer, void* mine) {
    const ncclDataType_t type = nccl_type(collective.buffer.dtype);
    const std::size_t count = collective.buffer.count, slice = collective.mine.count;
    switch (collective.kind) {
      case Collective::Kind::all_reduce:
        return ncclAllReduce(buffer, buffer, count, type, nccl_op(collective.op), comm_, stream_);
      case Collective::Kind::reduce:
        return ncclReduce(buffer, buffer, count, type, nccl_op(collective.op), collective.root, comm_,
                          stream_);
      case Collective::Kind::broadcast:
        return ncclBroadcast(buffer, buffer, count, type, collective.root, comm_, stream_);
      case Collective::Kind::reduce_scatter:
        return ncclReduceScatter(buffer, mine, slice, type, nccl_op(collective.op), comm_, stream_);
      case Collective::Kind::all_gather:
        return ncclAllGather(mine, buffer, slice, type, comm_, stream_);
      case Collective::Kind::barrier:
        return ncclAllReduce(beat_->data(), beat_->data(), 1, ncclInt32, ncclSum, comm_, stream_);
    }
    return ncclInvalidArgument;
  }

  static void expect(ncclResult_t code, const char* doing) {
    if (code != ncclSuccess)
      throw Error(ErrorKind::internal, fmt::format("{}: NCCL says {}", doing, ncclGetErrorString(code)));
  }

  // Keeps the first failure. A call of a non-blocking communicator may still be under way.
  void note(ncclResult_t code) {
    if (code == ncclSuccess || code == ncclInProgress || failed_) return;
    failed_ = true;
    problem_ = fmt::format("NCCL: {}: {}", ncclGetErrorString(code), ncclGetLastError(comm_));
  }

  // What was sent last may still be on its way to others: finalizing waits for that.
  void end() {
    constexpr auto kFinalizeDeadline = std::chrono::seconds(5);
    device_.nccl_buffers().deregister_from(comm_);
    const auto deadline = std::chrono::steady_clock::now() + kFinalizeDeadline;
    note(ncclCommFinalize(comm_));
    State state = calls();
    while (state == State::busy && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
      state = calls();
    }
    if (state == State::done)
      ncclCommDestroy(comm_);
    else
      abort();
  }

  CudaDevice& device_;
  const int number_;  // of its stream
  cudaStream_t stream_;
  std::unique_ptr<runtime::Event> compute_;  // how far the compute stream was given work
  ncclComm_t comm_ = nullptr;
  bool failed_ = false;
  std::string problem_;
  Staged buffer_, mine_;
  std::unique_ptr<comm::Memory> beat_;  // what a barrier sums
};

}  // namespace

std::unique_ptr<CollectiveLibrary> make_nccl(CudaDevice& device, int stream) {
  return std::make_unique<NcclLibrary>(device, stream);
}

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "unknown";
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace fleetrun::cuda
