#include "launch/process/shells.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "launch/process/proc_files.h"
#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kShells = {"sh",   "dash", "bash", "zsh",    "ksh",
                                                     "mksh", "fish", "tcsh", "busybox"};

constexpr std::array<std::string_view, 8> kCompressors = {"gzip",   "pigz", "bzip2", "pbzip2",
                                                          "lbzip2", "xz",   "zstd",  "lz4"};

// "" where it cannot be read.
std::string target_of(const std::string& link) {
  std::error_code hidden;
  return fs::read_symlink(link, hidden).string();
}

std::string program_of(pid_t pid) {
  return fs::path(target_of(process_path(pid, "exe"))).filename().string();
}

std::vector<std::string> words_of(pid_t pid) {
  const std::string bytes = read_kernel_file(process_path(pid, "cmdline"));
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < bytes.size(); begin += words.back().size() + 1)
    words.push_back(bytes.substr(begin, bytes.find('\0', begin) - begin));
  return words;
}

// The pipes that the process prints into: "pipe:[4711]".
std::vector<std::string> outputs_of(pid_t pid) {
  std::vector<std::string> pipes;
  for (const char* name : {"fd/1", "fd/2"})
    if (std::string target = target_of(process_path(pid, name)); target.starts_with("pipe:"))
      pipes.push_back(std::move(target));
  return pipes;
}

// A link in /proc/PID/fd has the rights with which the file is open.
bool is_open_for_reading(const std::string& link) {
  struct stat facts {};
  return ::lstat(link.c_str(), &facts) == 0 && (facts.st_mode & S_IRUSR) != 0;
}

}  // namespace

bool is_shell(pid_t pid) { return std::ranges::find(kShells, program_of(pid)) != kShells.end(); }

bool is_compressor(pid_t pid) {
  return std::ranges::find(kCompressors, program_of(pid)) != kCompressors.end();
}

bool is_interactive_shell(pid_t pid) {
  if (!is_shell(pid)) return false;
  const std::vector<std::string> words = words_of(pid);
  for (std::size_t i = 1; i < words.size() && words[i].starts_with('-'); ++i)
    if (!words[i].starts_with("--") && words[i].find('i') != std::string::npos) return true;
  return false;
}

// bash always ignores SIGQUIT, and other programs may have a handler for SIGINT of their own.
std::vector<pid_t> foreground_of(pid_t shell) {
  std::vector<pid_t> children;
  if (!is_shell(shell)) return children;
  for (const pid_t pid : list_process_tree(shell)) {
    const auto stat = read_process_stat(pid);
    const bool is_running_child = stat && stat->parent == shell && stat->state != 'Z';
    if (is_running_child && !ignores(pid, is_shell(pid) ? SIGINT : SIGQUIT)) children.push_back(pid);
  }
  return children;
}

bool reads_output_of(pid_t reader, pid_t pid) {
  const std::vector<std::string> pipes = outputs_of(pid);
  if (pipes.empty()) return false;
  std::error_code gone;
  for (fs::directory_iterator entry(process_path(reader, "fd"), gone), end; !gone && entry != end;
       entry.increment(gone)) {
    const std::string link = entry->path().string();
    if (std::ranges::find(pipes, target_of(link)) != pipes.end() && is_open_for_reading(link)) return true;
  }
  return false;
}

}  // namespace fleetrun::launch
