#include "base/run/progress_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <new>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun {
namespace {

constexpr std::size_t kPlaceOfLostText = ProgressPage::kBytes + sizeof(FlightRecords);
static_assert(kPlaceOfLostText % alignof(LostText) == 0);
constexpr std::size_t kMappedBytes = kPlaceOfLostText + sizeof(LostText);

ProgressPage* map_page(int fd, int flags) {
  void* memory = ::mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorKind::os, fmt::format("mapping a progress page: {}", describe_errno(errno)));
  return static_cast<ProgressPage*>(memory);
}

Error cannot_make_page(int code) {
  rlimit limit{};
  if (code != EFBIG || ::getrlimit(RLIMIT_FSIZE, &limit) != 0)
    return Error(ErrorKind::os, fmt::format("creating a progress page: {}", describe_errno(code)));
  return Error(ErrorKind::os,
               fmt::format("the progress page of a rank has {} bytes, the limit of file sizes is {}",
                           kMappedBytes, limit.rlim_cur),
               "ulimit -f unlimited, or a limit of the batch system, lifts it");
}

}  // namespace

std::string_view describe(Phase phase) {
  constexpr std::array<std::string_view, 8> kNames = {
      "starting",   "joining", "loading", "training", "waiting for data", "waiting for the disk",
      "evaluating", "finished"};
  const auto index = static_cast<std::size_t>(phase);
  return index < kNames.size() ? kNames[index] : "unknown";
}

void GpuLoadPage::write(const GpuLoad& load) {
  busy_percent_ = load.busy_percent;
  celsius_ = load.celsius;
  memory_used_ = load.memory_used;
  memory_total_ = load.memory_total;
  milliwatts_ = load.milliwatts;
}

GpuLoad GpuLoadPage::read() const {
  return {.busy_percent = busy_percent_,
          .memory_used = memory_used_,
          .memory_total = memory_total_,
          .celsius = celsius_,
          .milliwatts = milliwatts_};
}

void ProgressPage::beat() {
  heartbeat_ns.store(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1),
                     std::memory_order_relaxed);
}

void ProgressPage::carry_over_to(ProgressPage& next) const {
  next.run_start_ns = run_start_ns.load();
  next.first_step = first_step.load();
  next.first_own_checkpoint = first_own_checkpoint.load();
  next.saved_steps = saved_steps.load();
  next.saved_place = saved_place.load();
  next.has_own_checkpoint = has_own_checkpoint.load();
  next.keeps_checkpoints = keeps_checkpoints.load();
  next.checkpoint_folder = checkpoint_folder.load();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    next.kept[i].place = kept[i].place.load();
    for (std::size_t use = 0; use < kTimeUses; ++use)
      next.kept[i].spent_ns[use] = kept[i].spent_ns[use].load();
  }
}

FlightRecords& ProgressPage::records() {
  return *reinterpret_cast<FlightRecords*>(reinterpret_cast<std::byte*>(this) + kBytes);
}

LostText& ProgressPage::lost_text() {
  return *reinterpret_cast<LostText*>(reinterpret_cast<std::byte*>(this) + kPlaceOfLostText);
}

void Unmap::operator()(ProgressPage* page) const { ::munmap(page, kMappedBytes); }

UniqueFd make_progress_fd() {
  UniqueFd fd(::memfd_create("fleetrun-progress", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), kMappedBytes) != 0) throw cannot_make_page(errno);
  // Else a worker that cut it short would end the launcher, which reads there, by SIGBUS.
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    throw cannot_make_page(errno);
  return fd;
}

ProgressPagePtr map_new_progress_page(int fd) {
  return ProgressPagePtr(new (map_page(fd, MAP_SHARED)) ProgressPage);
}

ProgressPagePtr map_inherited_progress_page(int fd) {
  if (fd < 0) return ProgressPagePtr(new (map_page(-1, MAP_PRIVATE | MAP_ANONYMOUS)) ProgressPage);
  struct stat facts {};
  if (::fstat(fd, &facts) != 0 || static_cast<std::size_t>(facts.st_size) < ProgressPage::kBytes)
    throw Error(ErrorKind::protocol, fmt::format("descriptor {} is not a progress page of the launcher", fd));
  ProgressPagePtr page(map_page(fd, MAP_SHARED));
  if (page->magic.load() != ProgressPage::kMagic || static_cast<std::size_t>(facts.st_size) < kMappedBytes)
    throw Error(ErrorKind::protocol, "the progress page was made by another version of fleetrun");
  return page;
}

}  // namespace fleetrun
