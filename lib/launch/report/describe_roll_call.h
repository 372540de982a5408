// What each rank is doing at one moment, and which one differs: for hangs and for SIGQUIT.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/report/collective_records.h"

namespace fleetrun::launch {

struct RankFacts {
  int rank = 0;
  pid_t pid = -1;
  bool running = false;
  std::string ended;      // of one that does not run: "finished with 0"
  char state = '?';       // as in /proc/PID/stat
  std::string wait;       // kernel function in which it waits, "" when there is none or it cannot be read
  double silent_for = 0;  // seconds since its log grew
  double worked = 0;      // seconds of processor time
  std::string last_line;  // of its log
  struct Step {
    std::string phase;
    std::uint64_t step = 0;
    std::string place;  // among its collectives
  };
  std::optional<Step> step;  // from the embedded runtime
};

// Reads state, wait and worked of a running rank.
void read_process_facts(RankFacts& facts);

// "pid 7, waiting for a device (D) in request_wait_answer": of a process that will not go.
std::string describe_stuck(pid_t pid);

// One line per rank, one that names the odd rank when there is one, and the lines of describe_collectives().
std::vector<std::string> describe_roll_call(const std::vector<RankFacts>& ranks,
                                            const CollectiveRecords& collectives = {});

// "rank 1 is stopped, the others are not"; "" when no rank, or every one, differs.
std::string describe_odd_rank(const std::vector<RankFacts>& ranks);

}  // namespace fleetrun::launch
