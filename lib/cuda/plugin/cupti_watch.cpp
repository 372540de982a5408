#include "cuda/plugin/cupti_watch.h"

#include <cuda_runtime_api.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/run/timeline.h"
#include "cuda/plugin/cupti_records.h"

namespace fleetrun::cuda {

#ifdef FLEETRUN_HAS_CUPTI
namespace {

using runtime::Activity;

constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                               CUPTI_ACTIVITY_KIND_MEMSET};
constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
constexpr std::size_t kAlignment = 8;  // bytes: that CUPTI wants of buffers
constexpr std::size_t kMostLetters = 200;

// As in C++, but not too long: the parameters of a template can take kilobytes.
std::string readable(const char* name) {
  if (name == nullptr) return "a kernel without a name";
  if (!std::string_view(name).starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free);
  const std::string whole = status == 0 ? text.get() : name;
  return whole.size() > kMostLetters ? whole.substr(0, kMostLetters) + "..." : whole;
}

template <typename Record>
Activity activity(const Record& record, std::string name, const char* category) {
  return {std::move(name), category, static_cast<std::int64_t>(record.start),
          static_cast<std::int64_t>(record.end)};
}

class CuptiLibrary {
 public:
  explicit CuptiLibrary(const std::string& file) {
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      problem = ::dlerror();  // NOLINT(concurrency-mt-unsafe): each thread has its own message
      return;
    }
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr) problem = fmt::format("{} has no function {}", file, name);
    };
    find("cuptiActivityRegisterCallbacks", register_callbacks);
    find("cuptiActivityRegisterTimestampCallback", register_clock);
    find("cuptiActivityEnable", enable);
    find("cuptiActivityDisable", disable);
    find("cuptiActivityFlushAll", flush);
    find("cuptiActivityGetNextRecord", next_record);
  }

  std::string problem;  // ""
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
};

// CUPTI's callbacks have no argument of ours, so what they fill is of the process. It is never destroyed, because CUPTI may call them when the
// process ends.
struct Seen {
  const CuptiLibrary* library = nullptr;
  std::mutex mutex;
  std::vector<Activity> activities;
};
Seen& seen() {
  static Seen* const all = new Seen;
  return *all;
}

// A forced flush also brings what is not done, such as the work of loader threads, without its times.
void keep(Activity activity) {
  if (activity.start_ns > 0 && activity.end_ns >= activity.start_ns)
    seen().activities.push_back(std::move(activity));
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t filled) {
  const std::unique_ptr<std::uint8_t, decltype(&std::free)> owner(buffer, &std::free);
  const std::lock_guard lock(seen().mutex);
  CUpti_Activity* record = nullptr;
  while (seen().library->next_record(buffer, filled, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto& kernel = *reinterpret_cast<const KernelRecord*>(record);
      keep(activity(kernel, readable(kernel.name), "kernel"));
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      keep(activity(*reinterpret_cast<const CopyRecord*>(record), "copy", "copy"));
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      keep(activity(*reinterpret_cast<const FillRecord*>(record), "fill", "fill"));
    }
  }
}

std::uint64_t CUPTIAPI clock_of_trace() { return static_cast<std::uint64_t>(monotonic_ns()); }

bool enable(const CuptiLibrary& library) {
  bool good = true;
  for (const CUpti_ActivityKind kind : kKinds) good = library.enable(kind) == CUPTI_SUCCESS && good;
  return good;
}

void disable(const CuptiLibrary& library) {
  for (const CUpti_ActivityKind kind : kKinds) library.disable(kind);
  library.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

class CuptiWatch : public runtime::ActivityWatch {
 public:
  explicit CuptiWatch(const CuptiLibrary& library) : library_(library) {}
  ~CuptiWatch() override { stop(); }
  CuptiWatch(const CuptiWatch&) = delete;
  CuptiWatch& operator=(const CuptiWatch&) = delete;

  void begin() override {
    {
      const std::lock_guard lock(seen().mutex);
      seen().activities.clear();
    }
    watches_ = true;
    enable(library_);
  }

  std::vector<Activity> end() override {
    stop();
    const std::lock_guard lock(seen().mutex);
    return std::exchange(seen().activities, {});
  }

 private:
  void stop() {
    if (std::exchange(watches_, false)) disable(library_);
  }

  const CuptiLibrary& library_;
  bool watches_ = false;
};

std::string usual_file() { return fmt::format("libcupti.so.{}", CUDART_VERSION / 1000); }

}  // namespace

std::unique_ptr<runtime::ActivityWatch> make_cupti_watch(const std::string& file, std::string& problem) {
  static const CuptiLibrary library(file.empty() ? usual_file() : file);
  problem = library.problem;
  if (!problem.empty()) return nullptr;
  seen().library = &library;
  // Before anything is watched, or the first records would have CUPTI's own clock. The first start of CUPTI can take a while.
  const bool starts = library.register_callbacks(give_buffer, take_buffer) == CUPTI_SUCCESS &&
                      library.register_clock(clock_of_trace) == CUPTI_SUCCESS && enable(library);
  disable(library);
  if (!starts) {
    problem = "it cannot watch this process, which another profiler may watch";
    return nullptr;
  }
  return std::make_unique<CuptiWatch>(library);
}
#else
std::unique_ptr<runtime::ActivityWatch> make_cupti_watch(const std::string&, std::string& problem) {
  problem = "fleetrun was built without its headers";
  return nullptr;
}
#endif

}  // namespace fleetrun::cuda
