// Starting worker processes, and nothing else. A failure is a value: the caller decides what it means.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/process/death_watch.h"

namespace fleetrun::launch {

// The child gets its own process group, dies with the thread that calls spawn, has default signal
// dispositions (an ignored SIGHUP stays ignored, as nohup wants) and an empty signal mask, and holds
// no descriptor but 0, 1, 2 and those listed.
struct SpawnRequest {
  std::string executable;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"
  int input_fd = 0;
  int output_fd = 1;      // stdout
  int error_fd = -1;      // stderr; -1: as stdout
  int cgroup_fd = -1;     // folder of the cgroup to start in, if that can be; -1: none
  std::vector<int> cpus;  // that it may use; empty: ours
  std::vector<int> inherited_fds;
  int terminal_fd = -1;  // whose foreground becomes the child's process group; -1: none
};

struct SpawnResult {
  pid_t pid = -1;
  UniqueFd pidfd;
  int error = 0;  // errno of the first step that went wrong; 0: the program runs
};

SpawnResult spawn(const SpawnRequest& request);

// All at one time. The results end with the first that could not be started; none of those after it is left.
// `deaths` watches each one, by its index in `requests`, before its program runs.
std::vector<SpawnResult> spawn_all(const std::vector<SpawnRequest>& requests, DeathWatch* deaths = nullptr);

}  // namespace fleetrun::launch
