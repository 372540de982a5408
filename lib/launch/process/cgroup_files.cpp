#include "launch/process/cgroup_files.h"

#include <filesystem>
#include <sstream>
#include <vector>

#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// In version 1 each controller has a hierarchy of its own, where /sys/fs/cgroup/CONTROLLER shows it.
std::string cgroup1_folder(const std::string& controller, const std::string& cgroup) {
  for (const std::string& line : split(cgroup, '\n')) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    for (const std::string& name : split(line.substr(first + 1, second - first - 1), ','))
      if (name == controller) return "/sys/fs/cgroup/" + controller + line.substr(second + 1);
  }
  return "";
}

}  // namespace

std::string own_cgroup_folder(const std::string& controller) {
  const std::string cgroup = read_kernel_file("/proc/self/cgroup");
  for (const std::string& folder : {cgroup1_folder(controller, cgroup),
                                    cgroup2_folder(read_kernel_file("/proc/self/mountinfo"), cgroup)}) {
    if (folder.empty()) continue;
    std::error_code problem;
    for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
      if (entry.path().filename().string().starts_with(controller + ".")) return folder;
  }
  return "";
}

std::string cgroup2_folder(const std::string& mountinfo, const std::string& cgroup) {
  std::string group;
  for (const std::string& line : split(cgroup, '\n'))
    if (line.starts_with("0::")) group = line.substr(3);
  if (group.empty() || group.starts_with("/..")) return "";
  for (const std::string& line : split(mountinfo, '\n')) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    const std::vector<std::string> fields = split(line, ' ');  // id parent device root mount-point ...
    if (fields.size() < 5) continue;
    const std::string& root = fields[3];
    if (root != "/" && !group.starts_with(root)) continue;
    const std::string below = root == "/" ? group : group.substr(root.size());
    return below == "/" ? fields[4] : fields[4] + below;
  }
  return "";
}

}  // namespace fleetrun::launch
