#include "launch/doctor/own_facts.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/run/run_key.h"
#include "base/run/version.h"
#include "base/system/file.h"
#include "base/system/host_memory.h"
#include "launch/doctor/device_facts.h"
#include "launch/doctor/within_time.h"
#include "launch/host/host_facts.h"
#include "launch/host/port_owner.h"
#include "launch/loop/listen_on.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr auto kDiskTime = std::chrono::milliseconds(1000);  // for each folder, and for the data lists
constexpr std::size_t kMostProgramBytes = std::size_t{256} << 20;
constexpr std::size_t kMostListBytesRead = std::size_t{64} << 20;
constexpr std::size_t kMostNames = 10000;  // of a folder with data that count
constexpr std::size_t kHashDigits = 12;

std::string hash_of(std::string_view text) {
  std::string digits;
  for (const std::uint8_t byte : hmac_sha256(RunKey(), text)) digits += fmt::format("{:02x}", byte);
  return digits.substr(0, kHashDigits);
}

std::string hash_of_program() {
  try {
    return hash_of(read_file(std::filesystem::canonical("/proc/self/exe"), kMostProgramBytes));
  } catch (const std::exception&) {
    return "unknown";  // it was removed
  }
}

// The content of a list; of a folder, the names in it.
std::string identity_of_data(const std::string& path) {
  try {
    if (!std::filesystem::is_directory(path)) return hash_of(read_file(path, kMostListBytesRead));
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      names.push_back(entry.path().filename());
      if (names.size() == kMostNames) break;
    }
    std::sort(names.begin(), names.end());
    return hash_of(fmt::format("{}", fmt::join(names, "\n")));
  } catch (const std::exception& problem) {
    return problem.what();
  }
}

std::string hash_of_data(const std::vector<std::string>& lists) {
  if (lists.empty()) return "";
  std::string all;
  for (const std::string& list : lists) all += identity_of_data(list) + "\n";
  return hash_of(all);
}

// The run creates folders that do not exist.
std::string existing_parent(std::string path) {
  std::error_code problem;
  path = std::filesystem::absolute(path, problem);
  while (!path.empty() && path != "/" && !std::filesystem::exists(path, problem))
    path = std::filesystem::path(path).parent_path();
  return path;
}

FolderFacts look_at_folder(const std::string& purpose, const std::string& path) {
  FolderFacts facts = {.purpose = purpose, .path = path, .problem = ""};
  const std::string folder = existing_parent(path);
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) {
    facts.problem = describe_errno(errno);
    return facts;
  }
  facts.free_bytes = static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  if (::access(folder.c_str(), W_OK) != 0)
    facts.problem = fmt::format("fleetrun may not write to {}: {}", folder, describe_errno(errno));
  else if (disk.f_files > 0 && disk.f_favail == 0)
    facts.problem = "its disk has no free inode";
  return facts;
}

std::vector<TakenPort> find_taken(const std::vector<int>& ports, bool required, const std::string& address) {
  std::vector<TakenPort> taken;
  for (const int port : ports) {
    Endpoint endpoint = {address, static_cast<std::uint16_t>(port)};
    if (listen_on(endpoint, 1)) continue;
    if (errno == EADDRINUSE) taken.push_back({port, required, describe_port_owner(endpoint.port)});
  }
  return taken;
}

std::int64_t free_bytes_of(const char* path) {
  struct statvfs disk {};
  if (::statvfs(path, &disk) != 0) return 0;
  return static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
}

// In cores; 0 without a limit.
double cpu_limit_of_cgroup() {
  const std::string first = "/sys/fs/cgroup/cpu" + path_of_cgroup("cpu");
  const std::int64_t quota = number_in(first + "/cpu.cfs_quota_us"),
                     period = number_in(first + "/cpu.cfs_period_us");
  if (quota > 0 && period > 0) return static_cast<double>(quota) / static_cast<double>(period);
  std::istringstream text(read_kernel_file("/sys/fs/cgroup" + path_of_cgroup("") + "/cpu.max"));
  double most = 0, each = 0;
  return text >> most >> each && each > 0 ? most / each : 0;  // "max 100000" has no limit
}

std::int64_t hard_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_max == RLIM_INFINITY)
    return -1;
  return static_cast<std::int64_t>(limit.rlim_max);
}

void read_limits(NodeFacts& facts) {
  const std::int64_t files = hard_limit(RLIMIT_NOFILE);
  facts.open_files = files < 0 ? INT64_MAX : files;
  facts.locked_bytes = hard_limit(RLIMIT_MEMLOCK);
  facts.shm_free = free_bytes_of("/dev/shm");
  facts.cpu_limit = cpu_limit_of_cgroup();
}

}  // namespace

NodeFacts read_own_facts(const ExaminedRun& run, const ClusterSpec& cluster, const std::string& host) {
  NodeFacts facts = {.host = host, .version = own_version(), .binary = hash_of_program(), .terms = run.terms};
  facts.job_problem = run.job_problem;
  facts.ranks = cluster.local_size();
  facts.cores = cluster.cores;
  facts.nccl = run.nccl;
  facts.data = within_time<std::string>(kDiskTime, [lists = run.data_lists] {
                 return hash_of_data(lists);
               }).value_or("unknown: the disk does not answer");
  for (const auto& [purpose, path] : run.folders)
    facts.folders.push_back(
        within_time<FolderFacts>(kDiskTime,
                                 [purpose = purpose, path = path] { return look_at_folder(purpose, path); })
            .value_or(
                FolderFacts{purpose, path, 0,
                            fmt::format("the disk does not answer within {:g} s", in_seconds(kDiskTime))}));
  const std::string address = run.address.empty() ? (cluster.ipv6 ? "::" : "0.0.0.0") : run.address;
  facts.taken = find_taken(run.required_ports, true, address);
  for (TakenPort& port : find_taken(run.usual_ports, false, address)) facts.taken.push_back(std::move(port));
  const HostMemory memory = read_host_memory();
  facts.memory_free = memory.free;
  facts.memory_total = memory.total;
  read_limits(facts);
  read_device_facts(cluster, facts);
  return facts;
}

}  // namespace fleetrun::launch
