#include "launch/host/limits.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/process/cgroup_files.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

// The kernel compares the limit with a sum of clock ticks. The processor time that /proc tells may be some percent less.
constexpr double kShareOfLimit = 0.95;
constexpr double kTickSeconds = 0.2;  // of a short limit

// Two sockets that hold a port, log, the same log read, pidfd, progress page, connection to the store.
constexpr rlim_t kDescriptorsPerRank = 7;
constexpr rlim_t kMostPerRank = 11;             // the log read for hangs, too, and a log of stderr as often
constexpr rlim_t kOtherDescriptors = 40;        // the loop, consoles, pipes, a roll call
constexpr std::size_t kLongestString = 131071;  // MAX_ARG_STRLEN of Linux less the final NUL

struct Largest {
  std::string name;
  std::size_t bytes = 0, all = 0;
};

Largest find_largest(const Environment& environment) {
  Largest largest;
  for (const auto& [name, value] : environment.variables()) {
    const std::size_t bytes = name.size() + 1 + value.size();
    largest.all += bytes + 1;
    if (bytes > largest.bytes) largest = {name, bytes, largest.all};
  }
  return largest;
}

rlimit limit_of(__rlimit_resource resource) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(resource, &limit);
  return limit;
}

std::string describe_process_limit() {
  std::string text;
  const std::string folder = own_cgroup_folder("pids");
  const std::string most = folder.empty() ? "" : read_kernel_file(folder + "/pids.max");
  if (!most.empty() && most != "max\n")
    text = fmt::format("this cgroup may have {} processes (pids.max in {})", most.substr(0, most.find('\n')),
                       folder);
  const rlimit limit = limit_of(RLIMIT_NPROC);
  if (limit.rlim_cur != RLIM_INFINITY)
    text += fmt::format("{}this user may have {} processes (ulimit -u)", text.empty() ? "" : ", ",
                        limit.rlim_cur);
  return text;
}

}  // namespace

void raise_descriptor_limit(int ranks) {
  const rlim_t needed = kDescriptorsPerRank * static_cast<rlim_t>(ranks) + kOtherDescriptors;
  const rlim_t most = kMostPerRank * static_cast<rlim_t>(ranks) + kOtherDescriptors;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most) return;
  if (limit.rlim_max < needed)
    throw Error(
        ErrorKind::os,
        fmt::format("{} ranks need {} open descriptors, the hard limit is {}", ranks, needed, limit.rlim_max),
        "ulimit -Hn shows it; the administrator can raise it in limits.conf");
  limit.rlim_cur = std::min(most, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void check_argument_sizes(const std::vector<std::string>& argv, const Environment& environment) {
  for (const std::string& argument : argv)
    if (argument.size() > kLongestString)
      throw Error(ErrorKind::os, fmt::format("the argument {}... has {} bytes, Linux passes on at most {}",
                                             argument.substr(0, 40), argument.size(), kLongestString));
  const Largest largest = find_largest(environment);
  if (largest.bytes > kLongestString)
    throw Error(ErrorKind::os,
                fmt::format("the environment variable {} has {} bytes, Linux passes on at most {}",
                            largest.name, largest.bytes, kLongestString));
}

std::string describe_spawn_limit(int error, const std::vector<std::string>& argv,
                                 const Environment& environment) {
  if (error == EAGAIN || error == ENOMEM) return describe_process_limit();
  if (error != E2BIG) return "";
  const Largest largest = find_largest(environment);
  const std::size_t arguments =
      std::accumulate(argv.begin(), argv.end(), std::size_t{0},
                      [](std::size_t sum, const auto& text) { return sum + text.size() + 1; });
  return fmt::format(
      "arguments have {} bytes and the environment {}, most of them in {} ({}); Linux passes on a quarter of the stack limit (ulimit -s)",
      arguments, largest.all, largest.name, largest.bytes);
}

DeadlyLimits read_deadly_limits() {
  const rlimit time = limit_of(RLIMIT_CPU);
  return {limit_of(RLIMIT_FSIZE).rlim_cur, time.rlim_cur, time.rlim_max};
}

// At the hard limit of processor time the kernel sends SIGKILL, without a word.
std::string describe_death_limit(const ExitStatus& status, double cpu_seconds, const DeadlyLimits& limits) {
  if (status.how != ExitStatus::How::signaled) return "";
  if (status.value == SIGXFSZ) return fmt::format("files may have {} bytes (ulimit -f)", limits.file_bytes);
  const bool killed =
      status.value == SIGKILL &&
      cpu_seconds >= kShareOfLimit * static_cast<double>(limits.hard_cpu_seconds) - kTickSeconds;
  if (status.value != SIGXCPU && !killed) return "";
  return fmt::format("a process may take {} s of processor time (ulimit -t)",
                     killed ? limits.hard_cpu_seconds : limits.cpu_seconds);
}

}  // namespace fleetrun::launch
