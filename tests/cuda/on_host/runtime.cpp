// What the plug-in uses of the CUDA runtime. Calls of one process come from one device.
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cuda/on_host/machine.h"
#include "cuda/on_host/stream.h"

namespace on_host = fleetrun::cuda::on_host;
using on_host::cuda, on_host::fail, on_host::last_error;

void CUstream_st::push(std::function<bool()> more) {
  if (capture) return capture->graph.lanes[lane].push_back({std::move(more)});
  work.push_back(std::move(more));
  ++given;
}

void CUstream_st::go_on() {
  if (is_at_work) return;  // it waits for another process, and lets the other streams go on meanwhile
  is_at_work = true;
  const bool is_done = work.front()();
  is_at_work = false;
  if (!is_done) return;
  work.pop_front();
  ++done;
}

namespace {

constexpr std::size_t kUsualMemory = 96;  // MiB of this device
constexpr std::size_t kGuard = 64;        // bytes after each piece
constexpr unsigned char kUntouched = 0xA5;

std::string setting(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// Bytes of this device.
std::size_t memory() {
  const std::string text = setting("FLEETRUN_ON_HOST_MEBIBYTES");
  std::size_t mebibytes = kUsualMemory;
  std::from_chars(text.data(), text.data() + text.size(), mebibytes);
  return mebibytes << 20U;
}

std::size_t free_memory() { return memory() - std::min(memory(), cuda().taken); }

// A thread waits from the first question that finds work left until the same question finds none. What it asks about others meanwhile
// belongs to that wait.
cudaError_t answer(const void* of, bool done) {
  static thread_local const void* waits_for = nullptr;
  if (done && waits_for == of) waits_for = nullptr;
  if (done) return cudaSuccess;
  if (waits_for == nullptr) {
    waits_for = of;
    ++on_host::counts().waits;
  }
  return cudaErrorNotReady;
}

on_host::Kind kind_of(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice   ? &on_host::Counts::uploads
         : kind == cudaMemcpyDeviceToHost ? &on_host::Counts::downloads
                                          : &on_host::Counts::moves;
}

void wait_for(CUstream_st& stream) {
  if (stream.capture) on_host::refuse("the host waits for a stream while it records the stream");
  if (stream.done < stream.given) ++on_host::counts().waits;
  stream.go_on_until(stream.given);
}

cudaError_t make_piece(void** data, std::size_t bytes, bool of_device) {
  const std::lock_guard lock(cuda().mutex);
  if (of_device && bytes > free_memory()) return fail(cudaErrorMemoryAllocation);
  ++on_host::counts().allocations;
  constexpr std::size_t kAlignment = 256;
  const std::size_t whole = (bytes + kGuard + kAlignment - 1) / kAlignment * kAlignment;
  auto* const made = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  // What was never written is not a number that anybody hopes for; nobody looks so far into a workspace.
  constexpr std::size_t kMostFilled = std::size_t{1} << 20U;
  std::memset(made, kUntouched, std::min(whole, kMostFilled));
  std::memset(made + bytes, kUntouched, whole - bytes);
  cuda().pieces[made] = {bytes, of_device};
  if (of_device) cuda().taken += bytes;
  *data = made;
  return cudaSuccess;
}

cudaError_t free_piece(void* data) {
  const std::lock_guard lock(cuda().mutex);
  cuda().go_on();  // as cudaFree does
  const auto found = cuda().pieces.find(static_cast<const std::byte*>(data));
  if (found == cuda().pieces.end()) on_host::refuse("memory is freed that was never taken");
  for (std::size_t i = 0; i < kGuard; ++i)
    if (found->first[found->second.bytes + i] != std::byte{kUntouched})
      on_host::refuse(fmt::format("somebody wrote {} bytes after a piece of {}", i, found->second.bytes));
  if (found->second.of_device) cuda().taken -= found->second.bytes;
  cuda().pieces.erase(found);
  std::free(data);
  return cudaSuccess;
}

}  // namespace

namespace fleetrun::cuda::on_host {

Machine& cuda() {
  static Machine machine;
  return machine;
}

std::recursive_mutex& machine() { return cuda().mutex; }

cudaError_t& last_error() {
  static cudaError_t error = cudaSuccess;
  return error;
}

std::function<bool()> wait_for_mark(std::shared_ptr<CUstream_st> stream, std::size_t number) {
  return [stream = std::move(stream), number] {
    if (stream->done < number) stream->go_on();
    return stream->done >= number;
  };
}

void refuse(const std::string& what) {
  fmt::print(stderr, "CUDA on the host: {}\n", what);
  std::abort();
}

void expect_reachable(const void* data, std::size_t bytes, const char* who) {
  if (bytes == 0) return;
  const auto found = cuda().find(data);
  if (found == cuda().pieces.end()) refuse(fmt::format("{} is given memory of the host", who));
  if (static_cast<const std::byte*>(data) + bytes > found->first + found->second.bytes)
    refuse(
        fmt::format("{} is given {} bytes that reach beyond a piece of {}", who, bytes, found->second.bytes));
}

// At first no other stream goes on, since work is done as late as CUDA allows. But all streams of a GPU go on by
// themselves, and another one may have what the other process waits for.
bool wait_for_other_process(int& looks) {
  constexpr int kLooksAlone = 1000;
  static bool others_go_on = false;
  ::sched_yield();
  if (++looks < kLooksAlone || others_go_on) return false;
  others_go_on = true;
  for (const auto& [handle, stream] : cuda().streams)
    if (!stream->work.empty()) stream->go_on();
  others_go_on = false;
  return false;
}

bool computes() { return ::setting("FLEETRUN_ON_HOST_COMPUTE") != "0"; }

void give_until_done(cudaStream_t stream, Kind kind, std::function<bool()> work) {
  const std::lock_guard lock(machine());
  if (stream == nullptr) refuse("work is given to the default stream");
  ++(counts().*(stream->capture ? &Counts::recorded : kind));
  stream->push(stream->capture ? std::move(work) : watched(kind, std::move(work)));
}

}  // namespace fleetrun::cuda::on_host

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
extern "C" {

const char* cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaGetLastError() { return std::exchange(last_error(), cudaSuccess); }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  const std::string text = setting("FLEETRUN_ON_HOST_DEVICES");
  std::from_chars(text.data(), text.data() + text.size(), *count);
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13020;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(cuda().mutex);
  *free = free_memory();
  *total = memory();
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, std::size_t bytes) { return make_piece(data, bytes, true); }
cudaError_t cudaFree(void* data) { return free_piece(data); }
cudaError_t cudaDeviceSynchronize() {
  const std::lock_guard lock(cuda().mutex);
  cuda().go_on();
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) { return make_piece(data, bytes, false); }
cudaError_t cudaFreeHost(void* data) { return free_piece(data); }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  const std::lock_guard lock(cuda().mutex);
  const auto found = cuda().find(data);
  attributes->type = found == cuda().pieces.end() ? cudaMemoryTypeUnregistered
                     : found->second.of_device    ? cudaMemoryTypeDevice
                                                  : cudaMemoryTypeHost;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (flags != cudaStreamNonBlocking) on_host::refuse("a stream would wait for the default stream");
  if (priority > 0 || priority < -5)
    on_host::refuse("a stream has a priority that this device does not have");
  const std::lock_guard lock(cuda().mutex);
  const auto made = std::make_shared<CUstream_st>();
  cuda().streams[made.get()] = made;
  *stream = made.get();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  stream->go_on_until(stream->given);
  cuda().streams.erase(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  if (stream->capture) on_host::refuse("the host waits for a stream while it records the stream");
  const bool done = stream->done == stream->given;
  if (!done) stream->go_on();
  return answer(stream, done);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  wait_for(*stream);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;  // everything takes as long
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  *event = stream->capture ? on_host::mark_in_recording(*stream)
                           : CUevent_st{.stream = cuda().streams.at(stream), .number = stream->given};
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(cuda().mutex);
  if (!event->stream && !event->capture) return cudaSuccess;  // never recorded
  if (event->capture || stream->capture) return on_host::wait_in_recording(stream, *event);
  stream->push(on_host::wait_for_mark(event->stream, event->number));
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(cuda().mutex);
  if (event->capture) on_host::refuse("the host waits for an event of a recording");
  const bool done = !event->stream || event->stream->done >= event->number;
  if (!done) event->stream->go_on();
  return answer(event, done);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(cuda().mutex);
  if (event->capture) on_host::refuse("the host waits for an event of a recording");
  while (cudaEventQuery(event) == cudaErrorNotReady) {
  }
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  on_host::expect_reachable(data, bytes, "cudaMemset");
  on_host::give(stream, &on_host::Counts::fills, [=] { std::memset(data, value, bytes); });
  return cudaSuccess;
}
// Copies to and from memory that is not pinned are done when the call returns.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  if (kind != cudaMemcpyHostToDevice) on_host::expect_reachable(from, bytes, "cudaMemcpy");
  if (kind != cudaMemcpyDeviceToHost) on_host::expect_reachable(to, bytes, "cudaMemcpy");
  on_host::give(stream, kind_of(kind), [=] { std::memcpy(to, from, bytes); });
  if (kind == cudaMemcpyHostToDevice) on_host::counts().uploaded_bytes += static_cast<std::int64_t>(bytes);
  if (kind == cudaMemcpyDeviceToHost) on_host::counts().downloaded_bytes += static_cast<std::int64_t>(bytes);
  const void* const host = kind == cudaMemcpyHostToDevice ? from : to;
  if (kind != cudaMemcpyDeviceToDevice && cuda().find(host) == cuda().pieces.end()) wait_for(*stream);
  return cudaSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
