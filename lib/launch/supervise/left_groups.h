// What leaders leave in their process groups when fleetrun asks them to end: a wrapper, such as a shell script, ends at once, and its
// program knows nothing of it yet. Asks the program to end, too, and tells when the group is empty.
#pragma once
#include <sys/types.h>

#include <set>
#include <vector>

namespace fleetrun::launch {

class LeftGroups {
 public:
  // The leader of the rank has ended, but is not reaped. `signal` asked it to end; the whole group has got that signal, too, if
  // `group_has_it`. `known`: children of this process that nobody has left behind. Asks the group; false: it is empty.
  bool add(int rank, pid_t leader, int signal, bool group_has_it, const std::vector<pid_t>& known);
  // Asks processes that are new. Forgets the ranks whose groups are empty, and returns them.
  std::vector<int> take_ended(const std::vector<pid_t>& known);
  bool empty() const { return groups_.empty(); }
  void forget() { groups_.clear(); }

 private:
  struct Group {
    int rank = 0;
    pid_t leader = 0;
    int signal = 0;
    bool has_it = false;
    std::set<pid_t> asked;  // those that handle the signal
  };

  static void ask(Group& group, const std::vector<pid_t>& members);

  std::vector<Group> groups_;
};

}  // namespace fleetrun::launch
