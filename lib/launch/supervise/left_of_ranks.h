// What leaders leave running when a signal asks them to end: a wrapper, such as a shell script, ends at once, and its program knows nothing
// of it yet. Asks the program to end, too, and tells when nothing of the rank is left.
#pragma once
#include <sys/types.h>

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "launch/loop/clock.h"
#include "launch/process/orphans.h"

namespace fleetrun::launch {

// A process belongs to the rank whose process group it is in, or else to the rank of its parent. `timeout` makes a process group of its own
// in our session; when it has lost its parent, the rank's number in its environment counts. A process in another session belongs to no rank.
using LeftByRank = std::unordered_map<int, std::vector<LeftProcess>>;  // parents before their children
LeftByRank by_rank(const std::vector<LeftProcess>& left, const std::vector<pid_t>& leaders);

class LeftOfRanks {
 public:
  // For processes without a handler of their own: to end with those that have one, as `tee` does after it has read the rest, and then to
  // end after SIGTERM, which they may ignore.
  static constexpr auto kTimeToFollow = std::chrono::milliseconds(300),
                        kTimeToEnd = std::chrono::milliseconds(1000);

  struct Request {
    int signal = 0;                 // with which the leader was asked to end; 0: it was not asked
    bool by_fleetrun = true;        // otherwise its last words may still be in a pipe to `tee`
    bool group_has_it = false;      // its whole process group has got the signal
    std::set<pid_t> handlers = {};  // below the leader: they had a handler when it was asked
    std::set<pid_t> asked = {};     // below the leader: fleetrun has sent them SIGTERM, too
    std::set<pid_t> filters = {};   // below the leader: they read what it or a handler printed
  };
  // The leader of the rank has ended, but is not reaped. Asks what is left to end, too: at once, or after kTimeToFollow if it was not
  // fleetrun who asked the leader. False: nothing is left.
  bool add(int rank, pid_t leader, const Request& request, const LeftByRank& left);
  // Asks new processes, too. Returns the ranks whose processes have ended or had their time, and forgets these ranks.
  std::vector<int> take_ended(const LeftByRank& left, TimePoint now);
  bool empty() const { return groups_.empty(); }
  // Those that had kTimeToEnd after SIGTERM and are still there.
  const std::vector<pid_t>& deaf() const { return deaf_; }
  void forget();

 private:
  struct Group {
    int rank = 0;
    pid_t leader = 0;
    Request request;
    TimePoint ask_at;
    std::set<pid_t> asked, told;    // those with a handler, and the others
    std::set<pid_t> in_foreground;  // of shells that were asked, and run no trap before these end
    std::optional<TimePoint> alone_since, told_at;  // nobody with a handler is left
  };

  static void ask(Group& group, const std::vector<LeftProcess>& members, TimePoint now);
  static void note_filters(Group& group, const std::vector<LeftProcess>& members);
  static void tell(Group& group, const std::vector<LeftProcess>& members, TimePoint now);
  static bool ask_handlers(Group& group, const std::vector<LeftProcess>& members);
  static void end_shells_above(const LeftProcess& member, Group& group,
                               const std::vector<LeftProcess>& members);
  static void interrupt_below(pid_t handler, Group& group, const std::vector<LeftProcess>& members);

  std::vector<Group> groups_;
  std::vector<pid_t> deaf_;
};

}  // namespace fleetrun::launch
