// The signals that we handle, read from a descriptor instead of interrupting us.
#pragma once
#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// INT, TERM, HUP end the run, HUP only if we were not started with it ignored (nohup); QUIT calls the roll, USR1 and
// USR2 are passed on, TSTP and CONT stop and continue, CHLD tells of orphans.
std::vector<int> handled_signals();
bool ends_a_run(int signal);
bool is_obeyed_by_a_run(int signal);  // that goes on: QUIT, USR1, USR2, TSTP, CONT

// Whoever starts us may ignore or block signals, and a program inherits both. Blocks none, and gives SIGCHLD and SIGPIPE
// their usual effect: with SIGCHLD ignored the kernel throws away how a child ended.
void reset_inherited_signals();

struct ReceivedSignal {
  int number = 0;
  bool from_terminal = false;  // somebody pressed a key
  bool of_stop = false;        // SIGCHLD: a child has stopped
};

void block_signals(const std::vector<int>& signals);
UniqueFd open_signal_fd(const std::vector<int>& signals);  // blocked ones; does not block. Throws Error(os).
std::vector<ReceivedSignal> read_signals(int signal_fd);   // those that came, in order

// To a process that reads it with read_signals(), which gives it the same origin there.
void pass_signal(const UniqueFd& pidfd, const ReceivedSignal& signal);

// timeout(1), Slurm and others send one signal more than once: to the process and to its group, say. A signal that ends
// a run and comes again within a second is the same one, unless it is a second key press. So is a SIGINT that no key has sent and that follows
// another such signal: pexpect sends SIGHUP, SIGINT and SIGKILL one after the other.
class SignalRepeats {
 public:
  bool is_repeat(const ReceivedSignal& signal, TimePoint now);

 private:
  ReceivedSignal last_;
  TimePoint last_at_;
};

// A Python rank that registers its faulthandler for this signal shows its stacks without a debugger. Its number stands in the variable.
constexpr int kStackSignal = 50;  // a real-time signal, for which nothing else has a handler
constexpr const char* kStackSignalVariable = "FLEETRUN_STACK_SIGNAL";
bool catches(pid_t pid, int signal);  // has a handler for it; false of one that is gone

bool ignores(pid_t pid, int signal);  // false of one that is gone

bool is_pending(pid_t pid, int signal);  // it has been sent, but has not come yet; false of one that is gone

// The process has a handler for the signal, or blocks it in its first thread, so that it may wait for it. For SIGTERM, a shell counts only if it has
// a handler, because bash blocks SIGTERM for a moment while it starts a program. (It blocks SIGINT, too, and then catches it while it waits.) False
// of a process that is gone. True where no /proc shows it: a process without a handler ends at the signal all the same.
bool handles(pid_t pid, int signal);

// The process neither handles nor ignores the signal, and has a thread that does not block it. Nothing is known of one
// that is gone: false. A thread that blocks every signal does so only for the moment in which it starts another one. True where no /proc
// shows it: a signal that is not sent does less harm.
bool would_end(pid_t pid, int signal);
bool would_end(const std::vector<std::string>& threads,
               int signal);  // by their texts of /proc/PID/task/TID/status

}  // namespace fleetrun::launch
