// What this node says about itself: its program, its folders, its limits.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/system/environment.h"
#include "launch/doctor/examination.h"
#include "launch/plan/cluster.h"

namespace fleetrun::launch {

// What to look at, decided from the options and the job file.
struct ExaminedRun {
  Terms terms;
  std::string job_problem;
  std::vector<std::pair<std::string, std::string>> folders;  // purpose and path, as in FolderFacts
  std::vector<std::string> data_lists;                       // files, or folders with data
  std::string address;                                       // where the ranks listen; "": on all addresses
  std::vector<int> required_ports, usual_ports;
  bool chooses_ports = false;     // a job file: its ranks also listen on ports that the kernel chooses
  std::vector<std::string> nccl;  // what lint_nccl() says about the variables
};

// Takes at most some seconds, whatever a disk or a driver does: a part that does not answer is reported as a problem.
NodeFacts read_own_facts(const ExaminedRun& run, const ClusterSpec& cluster, const std::string& host);

}  // namespace fleetrun::launch
