#include "launch/process/proc_files.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/system/unique_fd.h"
#include "launch/process/pidfd.h"

namespace fleetrun::launch {
namespace {

// Of the namespaces from that of /proc on; 1: it is ours; 0: we are not in it.
std::size_t own_depth() {
  static const std::size_t depth = [] {
    const std::vector<pid_t> numbers = numbers_in(read_kernel_file("/proc/self/status"));
    return !numbers.empty() && numbers.back() == ::getpid() ? numbers.size() : std::size_t{0};
  }();
  return depth;
}

// What /proc calls a process of ours; 0: it does not show it.
pid_t number_in_proc(pid_t pid) {
  if (own_depth() < 2) return own_depth() == 1 ? pid : 0;
  const UniqueFd pidfd = open_pidfd(pid);
  const std::string text = pidfd ? read_kernel_file(fmt::format("/proc/self/fdinfo/{}", pidfd.get())) : "";
  const auto place = text.find("Pid:");
  return place == std::string::npos ? 0 : std::max(0, std::atoi(text.c_str() + place + 4));
}

// What we call a process of /proc; 0: it is not in our namespace.
pid_t own_number(pid_t number) {
  if (own_depth() < 2) return own_depth() == 1 ? number : 0;
  const std::vector<pid_t> numbers = numbers_in(read_kernel_file(fmt::format("/proc/{}/status", number)));
  return numbers.size() >= own_depth() ? numbers[own_depth() - 1] : 0;
}

std::vector<pid_t> read_children(const std::string& path) {
  std::vector<pid_t> children;
  std::istringstream text(read_kernel_file(path));
  for (pid_t number = 0; text >> number;)
    if (const pid_t pid = own_number(number); pid > 0) children.push_back(pid);
  return children;
}

// For kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> search_children() {
  std::vector<pid_t> children;
  const pid_t self = number_in_proc(::getpid());
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", problem)) {
    const pid_t number = std::atoi(entry.path().filename().c_str());
    if (number <= 0) continue;
    const auto stat = parse_process_stat(read_kernel_file(entry.path() / "stat"));
    if (const pid_t pid = stat && stat->parent == self ? own_number(number) : 0; pid > 0)
      children.push_back(pid);
  }
  return children;
}

}  // namespace

std::string read_kernel_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

std::string process_path(pid_t pid, const std::string& name) {
  const pid_t number = number_in_proc(pid);
  return number == 0 ? "" : fmt::format("/proc/{}/{}", number, name);
}

bool shows_own_processes() { return own_depth() > 0; }

std::vector<pid_t> numbers_in(const std::string& proc_status) {
  constexpr std::string_view kName = "\nNSpid:";
  std::vector<pid_t> numbers;
  const auto place = proc_status.find(kName);
  if (place == std::string::npos) return numbers;
  std::istringstream line(proc_status.substr(place + kName.size()));
  for (pid_t number = 0; line >> number;) numbers.push_back(number);
  return numbers;
}

std::vector<pid_t> list_children() {
  const char* const file = "/proc/thread-self/children";
  return ::access(file, R_OK) == 0 ? read_children(file) : search_children();
}

std::string describe_process(pid_t pid) {
  std::string command = read_kernel_file(process_path(pid, "comm"));
  while (command.ends_with('\n')) command.pop_back();
  return command.empty() ? fmt::format("pid {}", pid) : fmt::format("pid {} ({})", pid, command);
}

// The name in parentheses may hold anything, so count from its end.
std::optional<ProcessStat> parse_process_stat(const std::string& text) {
  const auto in_time = [](std::int64_t ticks) {
    return std::chrono::milliseconds(1000 * ticks / ::sysconf(_SC_CLK_TCK));
  };
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state >> stat.parent;
  const auto skip = [&fields](int count) {
    std::string skipped;
    for (int i = 0; i < count; ++i) fields >> skipped;
  };
  std::int64_t ticks = 0;
  skip(9);                       // pgrp to cmajflt
  for (int i = 0; i < 4; ++i) {  // utime, stime, cutime, cstime
    if (!(fields >> ticks)) return std::nullopt;
    stat.cpu_time += in_time(ticks);
    if (i < 2) stat.own_cpu_time += in_time(ticks);
  }
  skip(4);  // priority to itrealvalue
  if (!(fields >> ticks)) return std::nullopt;
  stat.started = in_time(ticks);
  return stat;
}

std::string read_variable(pid_t pid, const std::string& name) {
  const std::string lines = '\0' + read_kernel_file(process_path(pid, "environ"));
  const std::string start = '\0' + name + '=';
  const std::size_t found = lines.find(start);
  return found == std::string::npos ? "" : lines.c_str() + found + start.size();
}

std::optional<ProcessStat> read_process_stat(pid_t pid) {
  return parse_process_stat(read_kernel_file(process_path(pid, "stat")));
}

double read_own_cpu_seconds(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? std::chrono::duration<double>(stat->own_cpu_time).count() : 0;
}

std::uint64_t read_peak_kib(pid_t pid) {
  const std::string status = read_kernel_file(process_path(pid, "status"));
  constexpr std::string_view kName = "VmHWM:";
  const std::size_t place = status.find(kName);
  return place == std::string::npos ? 0 : std::strtoull(status.c_str() + place + kName.size(), nullptr, 10);
}

ProcessIo parse_process_io(const std::string& text) {
  std::istringstream lines(text);
  std::string name;
  ProcessIo io;
  for (std::uint64_t bytes = 0; lines >> name >> bytes;) {
    if (name == "rchar:" || name == "read_bytes:")
      io.read = std::max(io.read, bytes);  // what it maps counts only in the second
    if (name == "wchar:") io.written = bytes;
  }
  return io;
}

ProcessIo read_process_io(pid_t pid) { return parse_process_io(read_kernel_file(process_path(pid, "io"))); }

std::vector<std::string> read_thread_statuses(pid_t pid) {
  std::vector<std::string> statuses;
  std::error_code gone;
  std::filesystem::directory_iterator thread(process_path(pid, "task"), gone);
  for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone))
    statuses.push_back(read_kernel_file(thread->path() / "status"));
  return statuses;
}

std::vector<pid_t> list_process_tree(pid_t root) {
  std::vector<pid_t> tree = {root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const pid_t number = number_in_proc(tree[i]);
    if (number == 0) continue;
    std::error_code gone;  // each thread has a list of the children that it started
    std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", number), gone);
    for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone)) {
      const std::vector<pid_t> children = read_children(thread->path() / "children");
      tree.insert(tree.end(), children.begin(), children.end());
    }
  }
  return tree;
}

double seconds_since_write(const struct stat& file, const Moment& start) {
  const auto written =
      std::chrono::seconds(file.st_mtim.tv_sec) + std::chrono::nanoseconds(file.st_mtim.tv_nsec);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::clamp(std::chrono::duration<double>(now - written).count(), 0.0, seconds_since(start));
}

}  // namespace fleetrun::launch
