// What leaders leave in their process groups when a signal asks them to end: a wrapper, such as a shell script, ends at once, and its
// program knows nothing of it yet. Asks the program to end, too, and tells when the group is empty.
#pragma once
#include <sys/types.h>

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "launch/loop/clock.h"
#include "launch/process/orphans.h"

namespace fleetrun::launch {

using LeftByGroup = std::unordered_map<pid_t, std::vector<LeftProcess>>;  // parents before their children
LeftByGroup by_group(const std::vector<LeftProcess>& left);

class LeftGroups {
 public:
  // For processes without a handler of their own: to end with those that have one, as `tee` does after it has read the rest, and then to
  // end after SIGTERM, which they may ignore.
  static constexpr auto kTimeToFollow = std::chrono::milliseconds(300),
                        kTimeToEnd = std::chrono::milliseconds(1000);

  // The leader of the rank has ended, but is not reaped. `signal` asked it to end; the whole group has got that signal, too, if
  // `group_has_it`. Asks the group; false: it is empty.
  bool add(int rank, pid_t leader, int signal, bool group_has_it, const LeftByGroup& left);
  // Asks processes that are new. Forgets the ranks in whose groups there is nobody to wait for, and returns them.
  std::vector<int> take_ended(const LeftByGroup& left, TimePoint now);
  bool empty() const { return groups_.empty(); }
  void forget() { groups_.clear(); }

 private:
  struct Group {
    int rank = 0;
    pid_t leader = 0;
    int signal = 0;
    bool has_it = false;
    std::set<pid_t> asked, told;                    // those with a handler, and the others
    std::optional<TimePoint> alone_since, told_at;  // nobody with a handler is left
  };

  static void ask(Group& group, const std::vector<LeftProcess>& members, TimePoint now);
  static bool ask_handlers(Group& group, const std::vector<LeftProcess>& members);

  std::vector<Group> groups_;
};

}  // namespace fleetrun::launch
