#include "launch/host/limits.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/process/cgroup_files.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

// The kernel compares the limit with a sum of clock ticks. The processor time that /proc tells may be some percent less.
constexpr double kShareOfLimit = 0.95;
constexpr double kTickSeconds = 0.2;  // of a short limit

// Two sockets that hold a port, log, the same log read, pidfd, progress page, connection to the store.
constexpr rlim_t kDescriptorsPerRank = 7;
constexpr rlim_t kMostPerRank = 11;       // the log read for hangs, too, and a log of stderr as often
constexpr rlim_t kOtherDescriptors = 40;  // the loop, consoles, pipes, a roll call

struct Largest {
  std::string name;
  std::size_t bytes = 0, all = 0;
};

Largest find_largest(const Environment& environment) {
  Largest largest;
  for (const auto& [name, value] : environment.variables()) {
    const std::size_t bytes = bytes_of_variable(name, value);
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

// By the number in a file of the kernel; none for "max", or without the file.
void add_limit(const std::string& file, const std::string& whose, const std::string& source,
               std::vector<ProcessLimit>& limits) {
  const std::uint64_t most = std::strtoull(read_kernel_file(file).c_str(), nullptr, 10);
  if (most > 0) limits.push_back({most, whose, source});
}

// A container does not see the cgroups of the host above its own.
std::vector<ProcessLimit> read_process_limits() {
  std::vector<ProcessLimit> limits;
  for (std::filesystem::path folder = own_cgroup_folder("pids"); folder.has_relative_path();
       folder = folder.parent_path())
    add_limit(folder / "pids.max", "this cgroup", "pids.max in " + folder.string(), limits);
  const rlimit user = limit_of(RLIMIT_NPROC);
  if (user.rlim_cur != RLIM_INFINITY) limits.push_back({user.rlim_cur, "this user", "ulimit -u"});
  for (const std::string name : {"pid_max", "threads-max"})
    add_limit("/proc/sys/kernel/" + name, "this machine", "kernel." + name, limits);
  return limits;
}

}  // namespace

void raise_descriptor_limit(const DescriptorUsers& users) {
  const auto ranks = static_cast<rlim_t>(users.ranks), nodes = static_cast<rlim_t>(users.nodes);
  const rlim_t needed = kDescriptorsPerRank * ranks + nodes + kOtherDescriptors;
  const rlim_t most = kMostPerRank * ranks + nodes + static_cast<rlim_t>(users.nodes_later) +
                      static_cast<rlim_t>(users.ranks_elsewhere) + kOtherDescriptors;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most) return;
  if (limit.rlim_max < needed)
    throw Error(
        ErrorKind::os,
        fmt::format("{} ranks{} need {} open descriptors, the hard limit is {}", ranks,
                    nodes == 0 ? "" : fmt::format(" here and {} nodes", nodes), needed, limit.rlim_max),
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

std::string describe_lowest(const std::vector<ProcessLimit>& limits) {
  const auto lowest = std::ranges::min_element(limits, {}, &ProcessLimit::most);
  if (lowest == limits.end()) return "";
  return fmt::format("{} may have {} processes ({})", lowest->whose, lowest->most, lowest->source);
}

std::string describe_spawn_limit(int error, const std::vector<std::string>& argv,
                                 const Environment& environment) {
  if (error == EAGAIN || error == ENOMEM) return describe_lowest(read_process_limits());
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
  const rlim_t seconds = killed ? limits.hard_cpu_seconds : limits.cpu_seconds;
  if (seconds == RLIM_INFINITY) return "";  // then the signal came from elsewhere
  return fmt::format("a process may take {} s of processor time (ulimit -t)", seconds);
}

}  // namespace fleetrun::launch
