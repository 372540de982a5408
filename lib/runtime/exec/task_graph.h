// Tasks 0..n-1 and who waits for whom.
#pragma once
#include <vector>

namespace fleetrun::runtime {

struct TaskGraph {
  std::vector<std::vector<int>> successors;  // by task, ascending, without repeats
  std::vector<int> dependencies;             // by task: how many tasks must end before it starts
  std::vector<bool> urgent;                  // by task: goes first when several are ready
  std::vector<int> lane;  // by task: of one lane, one at a time; kNoLane: any number at once

  static constexpr int kNoLane = -1;

  explicit TaskGraph(std::size_t tasks = 0)
      : successors(tasks), dependencies(tasks, 0), urgent(tasks, false), lane(tasks, kNoLane) {}
  std::size_t size() const { return dependencies.size(); }
  void add_edge(int before, int after);  // a repeat changes nothing
};

}  // namespace fleetrun::runtime
