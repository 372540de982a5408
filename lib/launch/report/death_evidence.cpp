#include "launch/report/death_evidence.h"

#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "base/json/json_reader.h"
#include "base/system/file.h"
#include "base/text/plural.h"
#include "base/text/printable.h"
#include "launch/evidence/log_cause.h"
#include "launch/evidence/traceback.h"
#include "launch/logs/last_lines.h"
#include "launch/process/cgroup_files.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kKernelLogBytes =
    1024 * 1024;  // the usual size of the kernel's ring is 128 KiB to 1 MiB
constexpr std::uint64_t kSmallSharedMemory = std::uint64_t{1} << 30;  // bytes
constexpr std::size_t kLongestException = 300;                        // bytes of a sentence
// The kernel writes no core file below a limit of one page, and a larger one page by page (fs/coredump.c, min_coredump of
// fs/binfmt_elf.c).
constexpr rlim_t kLeastCore = 4096, kBlock = 512;               // bytes; of st_blocks
constexpr auto kClockOfFiles = std::chrono::milliseconds(20);   // their times may lag by this much
constexpr const char* kFirstPidNamespace = "pid:[4026531836]";  // PROC_PID_INIT_INO of linux/proc_ns.h
// The clock of the kernel's log and CLOCK_MONOTONIC start within a second of each other; then NTP slews one of them, by 500 ppm
// at most (adjtimex(2)).
constexpr double kClockDrift = 5e-4, kClockStart = 1;
constexpr std::string_view kKilled = "Killed process ";     // of the kernel's line, before the number
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;  // version 1 says so with a number near 2^63

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

// "oom_kill 3" among lines of "name value".
std::uint64_t value_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  std::string key;
  for (std::uint64_t value = 0; lines >> key >> value;)
    if (key == name) return value;
  return 0;
}

// "max" is 0: no limit.
std::uint64_t as_number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

struct Space {
  std::uint64_t size = 0, free = 0;
};

std::optional<Space> space_of(const std::string& path) {
  struct statvfs facts {};
  if (::statvfs(path.c_str(), &facts) != 0 || facts.f_blocks == 0) return std::nullopt;
  return Space{facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize};
}

std::string kernel_log() {
  std::string text(kKernelLogBytes, '\0');
  constexpr int kReadAll = 3;  // SYSLOG_ACTION_READ_ALL
  const int count = ::klogctl(kReadAll, text.data(), static_cast<int>(text.size()));
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

// The seconds in "<3>[  924.215475] Out of memory: ..."; none: the kernel was told to write none.
std::optional<double> kernel_line_time(const std::string& line) {
  const auto start = line.find('[');
  if (start == std::string::npos || start > 4) return std::nullopt;  // after the level, "<6>" or "<14>"
  char* end = nullptr;
  const double time = std::strtod(line.c_str() + start + 1, &end);
  return *end == ']' ? std::optional(time) : std::nullopt;
}

OomKills logged_oom_kills(const DeathScene& scene) {
  std::error_code problem;
  const double start = scene.memory_before.read_at;
  return find_oom_kills(kernel_log(),
                        {.pid = scene.pid,
                         .pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", problem),
                         .since = start - kClockDrift * start - kClockStart});
}

// "out of memory: the kernel killed 1 process of this memory cgroup during the run, limit 256 MiB, peak 256 MiB (FOLDER)"
std::string describe_kills(std::uint64_t kills, const MemoryCgroup& group) {
  std::string text = fmt::format("out of memory: the kernel killed {} of this memory cgroup during the run",
                                 plural(kills, "process", "es"));
  if (group.limit > 0) text += fmt::format(", limit {}", mebibytes(group.limit));
  if (group.peak > 0) text += fmt::format(", peak {}", mebibytes(group.peak));
  return text + fmt::format(" ({})", group.folder);
}

bool is_sigkill(const ExitStatus& status) {
  return status.how == ExitStatus::How::signaled && status.value == SIGKILL;
}

// A shell says so of its last program.
bool tells_of(int signal, const ExitStatus& status) {
  return status.how == ExitStatus::How::exited && status.value == kSignalExitCode + signal;
}

// Since the attempt began.
std::uint64_t counted_kills(const DeathScene& scene, const MemoryCgroup& now) {
  const MemoryCgroup& before = scene.memory_before;
  return now.folder == before.folder && now.kills > before.kills ? now.kills - before.kills : 0;
}

void look_for_oom(const DeathScene& scene, DeathEvidence& evidence) {
  const MemoryCgroup now = read_memory_cgroup();
  OomKills kills = logged_oom_kills(scene);
  kills.counted = counted_kills(scene, now);
  evidence.out_of_memory = is_out_of_memory(scene, kills);
  if (!evidence.out_of_memory) return;
  const std::string& line = kills.line.empty() ? kills.line_of_other : kills.line;
  if (!line.empty()) evidence.facts.push_back("the kernel's log says: " + line);
  if (kills.counted > 0) evidence.facts.push_back(describe_kills(kills.counted, now));
}

// The rank ended by itself, perhaps since a process of its own was killed, such as PyTorch's data loader.
void look_for_killed_children(const DeathScene& scene, DeathEvidence& evidence) {
  const MemoryCgroup now = read_memory_cgroup();
  if (const std::uint64_t kills = counted_kills(scene, now); kills > 0)
    evidence.facts.push_back(describe_kills(kills, now));
}

void look_for_little_shared_memory(DeathEvidence& evidence) {
  const auto space = space_of("/dev/shm");
  if (!space) return;
  if (space->free <= space->size / 20)
    evidence.facts.push_back(fmt::format(
        "/dev/shm is full: {} of {} are left; a process that writes to it then dies of a bus error",
        mebibytes(space->free), mebibytes(space->size)));
  else if (space->size <= kSmallSharedMemory)  // what the rank had there went with it
    evidence.facts.push_back(fmt::format(
        "/dev/shm has only {}; a process dies of a bus error if it needs more shared memory (docker run --shm-size=SIZE gives more), or "
        "reads a mapped file that has become shorter",
        mebibytes(space->size)));
}

void look_for_lost_lines(const DeathScene& scene, DeathEvidence& evidence) {
  if (!scene.log_trouble.empty())
    evidence.facts.push_back(
        fmt::format("{}: the last lines of {} may be missing", scene.log_trouble, scene.log));
}

// Where core(5) says that it lies, when it is a plain name.
void look_for_core(const DeathScene& scene, DeathEvidence& evidence) {
  std::string pattern = read_kernel_file("/proc/sys/kernel/core_pattern");
  if (!pattern.empty() && pattern.back() == '\n') pattern.pop_back();
  if (pattern.starts_with('|')) {
    evidence.facts.push_back(
        fmt::format("core dumps go to the program {}", pattern.substr(1, pattern.find(' ') - 1)));
    return;
  }
  rlimit limit{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  ::getrlimit(RLIMIT_CORE, &limit);
  const std::string path = find_core(pattern, scene.pid, scene.started);
  evidence.facts.push_back(path.empty() ? describe_missing_core(pattern, limit.rlim_cur)
                                        : describe_core(path, limit.rlim_cur));
}

bool makes_core(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGFPE || signal == SIGILL ||
         signal == SIGQUIT || signal == SIGSYS || signal == SIGTRAP;
}

// Of a rank that SIGTERM ended. A script with the trap `kill 0` ends so when its program has failed.
void look_for_error_before_sigterm(const DeathScene& scene, DeathEvidence& evidence) {
  if (scene.status.exit_code() != kSignalExitCode + SIGTERM || !scene.origin.empty()) return;
  const ExitStatus failed = {ExitStatus::How::exited, 1};
  const LogCause error = find_log_cause(scene.log_end, failed, scene.script, scene.late);
  if (!error.what.empty())
    evidence.facts.push_back(fmt::format(
        "its log ends with {}; perhaps a trap of its script, such as `kill 0`, sent the signal then",
        describe(error)));
}

void look_at_log(const DeathScene& scene, DeathEvidence& evidence) {
  LogCause cause = find_log_cause(scene.log_end, scene.status, scene.script, scene.late);
  const std::string at_death =
      scene.log_end.substr(0, scene.log_end.size() - std::min(scene.late, scene.log_end.size()));
  if (cause.what.empty())
    if (const LogCause error = find_survived_error(at_death, scene.status, scene.script); !error.what.empty())
      evidence.facts.push_back(
          fmt::format("earlier in its log: {}; then the rank worked on, or its output had waited in a buffer",
                      describe(error)));
  look_for_error_before_sigterm(scene, evidence);
  evidence.exception = std::move(cause.what);
  evidence.exception_place = std::move(cause.place);
  if (cause.chained > 1 && !cause.root.empty())
    cause.root = fmt::format("the first of these {} exceptions: {}", cause.chained + 1, cause.root);
  else
    cause.root.clear();  // `from` tells it
  for (std::string* fact : {&cause.from, &cause.root, &cause.beside, &cause.hint})
    if (!fact->empty()) evidence.facts.push_back(std::move(*fact));
}

// Of a text from elsewhere.
std::string first_line(const std::string& text) {
  return shorten(printable(text.substr(0, text.find('\n'))), kLongestException);
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

MemoryCgroup read_memory_cgroup() {
  MemoryCgroup group{.folder = own_cgroup_folder("memory"), .read_at = kernel_log_time()};
  if (group.folder.empty()) return group;
  const auto read = [&](const char* name) { return read_kernel_file(group.folder + name); };
  const std::string events = read("/memory.events");
  const bool version_2 = !events.empty();
  group.kills = value_of(version_2 ? events : read("/memory.oom_control"), "oom_kill");
  group.limit = as_number(read(version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
  group.peak = as_number(read(version_2 ? "/memory.peak" : "/memory.max_usage_in_bytes"));
  if (group.limit >= kNoLimit) group.limit = 0;
  return group;
}

DeathEvidence gather_evidence(const DeathScene& scene) {
  DeathEvidence evidence;
  look_at_log(scene, evidence);
  const bool killed = scene.status.how == ExitStatus::How::signaled;
  if (!killed && !scene.error_file.empty()) read_error_file(scene.error_file, evidence);
  if (is_sigkill(scene.status) || tells_of(SIGKILL, scene.status))
    look_for_oom(scene, evidence);
  else if (!killed)
    look_for_killed_children(scene, evidence);
  if ((killed && scene.status.value == SIGBUS) || tells_of(SIGBUS, scene.status))
    look_for_little_shared_memory(evidence);
  if (killed && makes_core(scene.status.value)) look_for_core(scene, evidence);
  look_for_lost_lines(scene, evidence);
  return evidence;
}

// {"message": {"message": "ValueError: ...", "extraInfo": {"py_callstack": "...", "timestamp": "..."}}}
void read_error_file(const std::string& text, DeathEvidence& evidence) {
  const JsonDocument document = read_json(text);
  if (!document.complete) return;
  const JsonValue* const message = document.root.find("message", Kind::object);
  const JsonValue* const words = (message == nullptr ? document.root : *message).find("message", Kind::text);
  if (words != nullptr) evidence.exception = first_line(words->text);
  const JsonValue* const extra = message == nullptr ? nullptr : message->find("extraInfo", Kind::object);
  const JsonValue* const stack = extra == nullptr ? nullptr : extra->find("py_callstack", Kind::text);
  if (stack == nullptr) return;
  for (const std::string& line : split_lines(stack->text))
    if (std::string place = place_in_frame(line); !place.empty())
      evidence.exception_place = first_line(place);
}

double kernel_log_time() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string find_core(std::string pattern, pid_t pid, std::chrono::system_clock::time_point started) {
  if (const auto place = pattern.find("%p"); place != std::string::npos)
    pattern.replace(place, 2, std::to_string(pid));
  const auto earliest = (started - kClockOfFiles).time_since_epoch();
  for (const std::string& path : {pattern, fmt::format("{}.{}", pattern, pid)}) {
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    const auto written =
        std::chrono::seconds(facts.st_mtim.tv_sec) + std::chrono::nanoseconds(facts.st_mtim.tv_nsec);
    if (written >= earliest) return path;  // not of an earlier crash
  }
  return "";
}

std::string describe_core(const std::string& path, rlim_t limit) {
  const std::string found = std::filesystem::absolute(path).lexically_normal();
  struct stat facts {};
  const bool whole = limit == RLIM_INFINITY || ::stat(path.c_str(), &facts) != 0 ||
                     static_cast<rlim_t>(facts.st_blocks) * kBlock + kLeastCore < limit;
  if (whole) return "core file: " + found;
  return fmt::format("core file, cut off at the limit of {} (ulimit -c unlimited allows all of it): {}",
                     plural(static_cast<std::int64_t>(limit), "byte"), found);
}

std::string describe_missing_core(const std::string& pattern, rlim_t limit) {
  if (limit < kLeastCore)
    return fmt::format("no core file: the limit is {} (ulimit -c unlimited allows one)",
                       limit == 0 ? "0" : plural(static_cast<std::int64_t>(limit), "byte"));
  const std::string quoted = printable(pattern);
  return pattern.starts_with('/')
             ? fmt::format("no core file found for the core pattern {}", quoted)
             : fmt::format("no core file {} found here; it lies in the folder in which the rank ended",
                           quoted);
}

OomKills find_oom_kills(const std::string& kernel_log, const KernelLogSubject& subject) {
  if (subject.pid_namespace != kFirstPidNamespace) return {};
  const std::string wanted = fmt::format("{}{} ", kKilled, subject.pid);
  OomKills kills;
  for (const std::string& line : split_lines(kernel_log)) {
    const auto place = line.find(kKilled);
    const auto time = kernel_line_time(line);
    if (place == std::string::npos || !time || *time < subject.since) continue;
    const bool of_subject = line.compare(place, wanted.size(), wanted) == 0;
    (of_subject ? kills.line : kills.line_of_other) =
        shorten(printable(line.substr(place)), kLongestException);
  }
  return kills;
}

bool is_out_of_memory(const DeathScene& scene, const OomKills& kills) {
  if (!kills.line.empty()) return true;
  if (kills.counted == 0 || !scene.origin.empty()) return false;
  return tells_of(SIGKILL, scene.status) || (is_sigkill(scene.status) && kills.line_of_other.empty());
}

}  // namespace fleetrun::launch
