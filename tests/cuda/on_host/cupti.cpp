// What the plug-in uses of CUPTI: a list of the work of all streams, with the times at which this CUDA did it. A test names the plug-in's file in
// FLEETRUN_CUPTI to have these functions.
#include "cuda/plugin/cupti_records.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "cuda/on_host/stream.h"

#ifdef FLEETRUN_HAS_CUPTI

namespace fleetrun::cuda::on_host {
namespace {

struct Done {
  CUpti_ActivityKind kind;
  const char* name;
  std::uint64_t start, end;
};

struct Cupti {
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc clock = nullptr;
  std::set<CUpti_ActivityKind> kinds;
  std::vector<Done> done;
};

Cupti& cupti() {
  static Cupti all;
  return all;
}

struct Watched {
  CUpti_ActivityKind kind;
  const char* name;  // as the compiler writes it in the binary, if it is C++
};

Watched watched_kind(Kind kind) {
  if (kind == &Counts::fills) return {CUPTI_ACTIVITY_KIND_MEMSET, ""};
  if (kind == &Counts::moves || kind == &Counts::uploads || kind == &Counts::downloads)
    return {CUPTI_ACTIVITY_KIND_MEMCPY, ""};
  if (kind == &Counts::kernels)
    return {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "_ZN8fleetrun4cuda14kernel_on_hostEv"};
  return {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernel_of_a_library"};
}

template <typename Record>
void append(std::vector<std::byte>& bytes, const Done& done) {
  Record record{};
  record.kind = done.kind;
  record.start = done.start;
  record.end = done.end;
  if constexpr (requires { record.name; }) record.name = done.name;
  const auto* const first = reinterpret_cast<const std::byte*>(&record);
  bytes.insert(bytes.end(), first, first + sizeof record);
}

std::size_t bytes_of(CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_MEMSET) return sizeof(FillRecord);
  return kind == CUPTI_ACTIVITY_KIND_MEMCPY ? sizeof(CopyRecord) : sizeof(KernelRecord);
}

std::vector<std::byte> records(const std::vector<Done>& all) {
  std::vector<std::byte> bytes;
  for (const Done& done : all) {
    if (done.kind == CUPTI_ACTIVITY_KIND_MEMSET)
      append<FillRecord>(bytes, done);
    else if (done.kind == CUPTI_ACTIVITY_KIND_MEMCPY)
      append<CopyRecord>(bytes, done);
    else
      append<KernelRecord>(bytes, done);
  }
  return bytes;
}

}  // namespace

std::function<bool()> watched(Kind kind, std::function<bool()> work) {
  const Watched what = watched_kind(kind);
  if (!cupti().kinds.contains(what.kind)) return work;
  return [what, work = std::move(work), start = std::uint64_t{0}]() mutable {
    if (start == 0) start = cupti().clock();
    if (!work()) return false;
    cupti().done.push_back({what.kind, what.name, start, cupti().clock()});
    return true;
  };
}

}  // namespace fleetrun::cuda::on_host

namespace on_host = fleetrun::cuda::on_host;

// NOLINTBEGIN(readability-identifier-naming): CUPTI's names
extern "C" {
#define EXPORTED __attribute__((visibility("default")))

EXPORTED CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  on_host::cupti().request = request, on_host::cupti().complete = complete;
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  if (!on_host::cupti().kinds.empty()) on_host::refuse("CUPTI gets a clock while it watches");
  on_host::cupti().clock = clock;
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(on_host::machine());
  if (on_host::cupti().complete == nullptr) on_host::refuse("CUPTI watches, and nobody takes its buffers");
  on_host::cupti().kinds.insert(kind);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(on_host::machine());
  on_host::cupti().kinds.erase(kind);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  const std::lock_guard lock(on_host::machine());
  std::vector<on_host::Done> done = std::exchange(on_host::cupti().done, {});
  while (!done.empty()) {
    std::uint8_t* buffer = nullptr;
    std::size_t room = 0, most = 0;
    on_host::cupti().request(&buffer, &room, &most);
    constexpr std::size_t kOfARecord = sizeof(fleetrun::cuda::KernelRecord);  // the largest
    const std::size_t count = std::min(done.size(), room / kOfARecord);
    const std::vector<std::byte> bytes =
        on_host::records({done.begin(), done.begin() + static_cast<std::ptrdiff_t>(count)});
    std::memcpy(buffer, bytes.data(), bytes.size());
    on_host::cupti().complete(nullptr, 0, buffer, room, bytes.size());
    done.erase(done.begin(), done.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t filled,
                                                CUpti_Activity** record) {
  std::uint8_t* const next =
      *record == nullptr ? buffer
                         : reinterpret_cast<std::uint8_t*>(*record) + on_host::bytes_of((*record)->kind);
  if (next >= buffer + filled) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
#else
std::function<bool()> fleetrun::cuda::on_host::watched(Kind, std::function<bool()> work) { return work; }
#endif
