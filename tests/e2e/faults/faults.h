// What the cases of the fault matrix have in common. Their numbers: W workers, L launcher, P ports and folders,
// N network, D disk, L-n logs.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "e2e/faults/test_cgroup.h"
#include "e2e/launcher.h"
#include "support/leave_out.h"
#include "support/slowdown.h"

namespace fleetrun {

// Bounds that the user is promised, on this machine.
inline std::chrono::milliseconds within(std::chrono::milliseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time * testing::slowness());
}
inline double seconds_within(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(within(time)).count();
}

inline bool is_root() { return ::geteuid() == 0; }
inline bool can_mount() { return run_child({"/usr/bin/unshare", "-m", "/bin/true"}).code == 0; }

inline Words as_nobody(const Words& command) {
  Words words = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// The command in a mount namespace of its own, after the shell command `mount`.
inline Words after_mount(const std::string& mount, const Words& command) {
  Words words = {"/usr/bin/unshare", "-m", "/bin/sh", "-c", mount + " && exec \"$@\"", "sh"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// A launch whose workers run a shell script; in it, "$FAKE ..." is the fake worker and $RANK the rank.
struct ScriptLaunch : Launch {
  Words script_command(Words flags, const std::string& script) const {
    folder.write("worker.sh", std::string("FAKE=") + FAKE_WORKER + "\n" + script);
    flags.insert(flags.begin(), FLEETRUN_BINARY);
    flags.insert(flags.end(), {"/bin/sh", "worker.sh"});
    return flags;
  }
  ChildResult run_script(const Words& flags, const std::string& script) const {
    return run_child(script_command(flags, script), options());
  }
  // Before the launcher, in the shell that becomes it.
  ChildResult run_after(const std::string& preparation, const Words& command) const {
    Words words = {"/bin/sh", "-c", preparation + " && exec \"$@\"", "sh"};
    words.insert(words.end(), command.begin(), command.end());
    return run_child(words, options());
  }
};

// Its stderr goes to the file "err", which can be read while it runs.
inline Words with_errors_in_a_file(const Words& command) {
  Words words = {"/bin/sh", "-c", "exec \"$@\" 2> err", "sh"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

inline bool says(const Launch& launch, const std::string& text) {
  return comes_true([&] { return contains(launch.folder.read("err"), text); }, within(5s));
}

inline std::string read_all(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The parent of a worker: the middle process of its launcher.
inline pid_t parent_of(pid_t worker) {
  std::ifstream stat("/proc/" + std::to_string(worker) + "/stat");
  std::string number, name, state;
  pid_t parent = 0;
  stat >> number >> name >> state >> parent;
  REQUIRE(parent > 1);
  return parent;
}

inline char state_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  stat >> number >> name >> state;
  return state.empty() ? '?' : state.front();
}

inline bool gone(pid_t pid, std::chrono::milliseconds limit) {
  return comes_true([&] { return !is_alive(pid); }, within(limit));
}

// The process of a rank of the embedded runtime.
inline pid_t worker_of(const Launch& launch, int rank) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && contains(text, "PADDLE_TRAINER_ID=" + std::to_string(rank)) &&
        contains(text, launch.folder.path()))
      return pid;
  }
  FAIL("rank ", rank, " does not run");
  return 0;
}

// A job that trains until somebody ends it.
inline const std::string kEndlessJob = R"({
  "model": {"name": "mlp", "hidden": [8]},
  "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 4, 4], "classes": 4}, "batch_size": 8},
  "optimizer": {"name": "sgd", "learning_rate": 0.001},
  "train": {"epochs": 100000000, "log_every": 1}
})";

// Behind a program in a script: a reader of what the program prints. The shell starts it after the program. Until then, the program cannot
// print.
inline const std::string kReader = " | sh -c 'echo $$ > reader.new && mv reader.new reader; exec cat'";

}  // namespace fleetrun
