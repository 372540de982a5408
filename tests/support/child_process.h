// A process of a test, with its output caught, and a deadline for everything.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace fleetrun {

struct ChildOptions {
  std::string folder;                              // to run in
  std::map<std::string, std::string> environment;  // added to ours
  bool close_stdout = false;                       // a pipe that nobody reads
  bool ignore_hangup = false;                      // as under nohup
};

struct ChildResult {
  int code = -1;  // 128 + signal for a signal
  std::string out, err;
  double seconds = 0;
};

class ChildProcess {
 public:
  explicit ChildProcess(const std::vector<std::string>& command, const ChildOptions& options = {});
  ~ChildProcess();  // kills it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  // Throws std::runtime_error when it takes longer than `limit`.
  ChildResult wait(std::chrono::milliseconds limit = std::chrono::minutes(4));

 private:
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  std::chrono::steady_clock::time_point started_;
};

ChildResult run_child(const std::vector<std::string>& command, const ChildOptions& options = {});

// Looks again and again; false when it has not come true within `limit`.
bool comes_true(const std::function<bool()>& condition, std::chrono::milliseconds limit);

// The pid that a process writes into a file of `folder`, as soon as it is there: a shell's `echo $$ > FILE` makes
// the file before it writes. Throws std::runtime_error when none has come within `limit`.
pid_t pid_in(const TemporaryFolder& folder, const std::string& name, std::chrono::milliseconds limit);

bool is_alive(pid_t pid);  // and no zombie

}  // namespace fleetrun
