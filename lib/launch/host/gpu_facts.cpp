#include "launch/host/gpu_facts.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json/json_reader.h"
#include "base/system/unique_fd.h"
#include "base/text/plural.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr std::uint64_t kIdleBytes = std::uint64_t{1}
                                     << 30;  // what driver and display hold of an idle GPU, and room
constexpr double kGiB = 1 << 30;

JsonValue as_json(const std::vector<GpuFact>& gpus) {
  JsonValue json = JsonValue::list({});
  for (const GpuFact& gpu : gpus)
    json.items.push_back(JsonValue::object({{"uuid", gpu.uuid},
                                            {"name", gpu.name},
                                            {"migs", gpu.migs},
                                            {"used", gpu.memory_used},
                                            {"total", gpu.memory_total},
                                            {"holders", gpu.holders},
                                            {"ecc_errors", gpu.ecc_errors},
                                            {"throttle", gpu.throttle}}));
  return json;
}

// What as_json() wrote: nothing is missing.
std::vector<GpuFact> from_json(const JsonValue& json) {
  std::vector<GpuFact> gpus;
  for (const JsonValue& one : json.items) {
    GpuFact& gpu = gpus.emplace_back();
    gpu.uuid = one.find("uuid")->value.text;
    gpu.name = one.find("name")->value.text;
    for (const JsonValue& mig : one.find("migs")->value.items) gpu.migs.push_back(mig.text);
    gpu.memory_used = static_cast<std::uint64_t>(one.find("used")->value.integer);
    gpu.memory_total = static_cast<std::uint64_t>(one.find("total")->value.integer);
    for (const JsonValue& pid : one.find("holders")->value.items)
      gpu.holders.push_back(static_cast<pid_t>(pid.integer));
    gpu.ecc_errors = static_cast<std::uint64_t>(one.find("ecc_errors")->value.integer);
    gpu.throttle = static_cast<std::uint64_t>(one.find("throttle")->value.integer);
  }
  return gpus;
}

[[noreturn]] void tell_through(int fd, const std::string& library) {
  std::string text;
  if (const auto gpus = Nvml(library).read()) text = to_json(as_json(*gpus)) + "\n";
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(fd, text.data() + at, text.size() - at);
    if (count <= 0) break;
    at += static_cast<std::size_t>(count);
  }
  ::_exit(0);
}

// Up to the end, or as far as it came by the deadline.
std::string read_until(int fd, TimePoint deadline) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) <= 0) return text;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

// The place of the GPU that is meant; `gpus.size()` when none is.
std::size_t place_of(const std::vector<GpuFact>& gpus, const std::string& id) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const auto& migs = gpus[i].migs;
    if (id == std::to_string(i) || (id.starts_with("GPU-") && gpus[i].uuid.starts_with(id))) return i;
    if (std::find(migs.begin(), migs.end(), id) != migs.end()) return i;
  }
  return gpus.size();
}

// Of those that exist, each once.
std::vector<std::size_t> places_of(const std::vector<GpuFact>& gpus, const std::vector<std::string>& ids) {
  std::vector<std::size_t> places;
  for (const std::string& id : ids) {
    const std::size_t place = place_of(gpus, id);
    if (place < gpus.size() && std::find(places.begin(), places.end(), place) == places.end())
      places.push_back(place);
  }
  return places;
}

std::string describe_use(std::size_t place, const GpuFact& gpu) {
  std::vector<std::string> holders;
  for (const pid_t pid : gpu.holders) holders.push_back(describe_process(pid));
  return fmt::format("GPU {} ({}, {}) is in use: {:.1f} of {:.1f} GiB{}{}", place, gpu.name, gpu.uuid,
                     static_cast<double>(gpu.memory_used) / kGiB,
                     static_cast<double>(gpu.memory_total) / kGiB, holders.empty() ? "" : ", by ",
                     fmt::join(holders, ", "));
}

}  // namespace

std::optional<std::vector<GpuFact>> probe_gpus(const std::string& library, Clock::duration limit) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) tell_through(write_end.get(), library);
  write_end.reset();
  if (pid < 0) return std::nullopt;
  const std::string text = read_until(read_end.get(), Clock::now() + limit);
  ::kill(pid, SIGKILL);                                  // still our unreaped child
  if (text.ends_with('\n')) ::waitpid(pid, nullptr, 0);  // else it may hang in the driver: not waited for
  const JsonDocument document = read_json(text);
  if (!text.ends_with('\n') || !document.complete) return std::nullopt;
  return from_json(document.root);
}

std::vector<std::string> lint_gpus(const std::vector<GpuFact>& gpus,
                                   const std::vector<std::string>& visible) {
  std::vector<std::string> found;
  for (const std::string& id : visible)
    if (place_of(gpus, id) == gpus.size())
      found.push_back(fmt::format("the driver has no GPU {}; it has {}", id, gpus.size()));
  for (const std::size_t place : places_of(gpus, visible))
    if (gpus[place].memory_used > kIdleBytes || !gpus[place].holders.empty())
      found.push_back(describe_use(place, gpus[place]));
  return found;
}

std::vector<std::string> lint_gpu_health(const std::vector<GpuFact>& gpus,
                                         const std::vector<std::string>& visible) {
  // nvmlClocksThrottleReason... of nvml.h; idle clocks and the limit of the user are not faults.
  static const std::vector<std::pair<std::uint64_t, const char*>> reasons = {
      {0x08, "hardware slowdown"},
      {0x20, "heat, seen by the driver"},
      {0x40, "heat, seen by the hardware"},
      {0x80, "power brake"}};
  std::vector<std::string> found;
  for (const std::size_t place : places_of(gpus, visible)) {
    const GpuFact& gpu = gpus[place];
    const std::string name = fmt::format("GPU {} ({}, {})", place, gpu.name, gpu.uuid);
    if (gpu.ecc_errors > 0)
      found.push_back(fmt::format("{} has had {} since the driver was loaded", name,
                                  plural(gpu.ecc_errors, "uncorrected memory error")));
    std::vector<std::string> slow;
    for (const auto& [bit, words] : reasons)
      if ((gpu.throttle & bit) != 0) slow.emplace_back(words);
    if (!slow.empty())
      found.push_back(fmt::format("{} runs at a lower clock: {}", name, fmt::join(slow, ", ")));
  }
  return found;
}

}  // namespace fleetrun::launch
