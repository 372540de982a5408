// Examinations for the tests of the doctor's judgement.
#pragma once
#include <string>
#include <vector>

#include "launch/doctor/judge.h"

namespace fleetrun::launch::testing {

// So many nodes that are alike and healthy; all links are good.
inline Examination healthy(int nodes) {
  Examination examination;
  for (int node = 0; node < nodes; ++node) {
    NodeExamination one;
    one.address = "10.0.0." + std::to_string(node + 1);
    one.facts = NodeFacts{.host = "host" + std::to_string(node),
                          .version = "1.0",
                          .binary = "abc",
                          .terms = {{"--grace", "10"}},
                          .data = "d",
                          .folders = {{"--log_dir", "log", std::int64_t{10} << 30, ""}},
                          .shm_free = std::int64_t{8} << 30,
                          .memory_free = std::int64_t{8} << 30,
                          .memory_total = std::int64_t{16} << 30,
                          .open_files = 100000,
                          .ranks = 2,
                          .cores = 4};
    one.clock = ClockOffset{0.001, 0.0005};
    one.speed = CpuSpeed{20, 1};
    examination.nodes.push_back(one);
  }
  for (int from = 0; from < nodes; ++from)
    for (int to = 0; to < nodes; ++to) {
      if (from == to) continue;
      examination.reach.push_back({from, to, ""});
      examination.links.push_back({from, to, 5e-5, 1e9, 10000, 0, 1500, ""});
    }
  return examination;
}

inline std::vector<std::string> texts_of(const std::vector<DoctorFinding>& findings) {
  std::vector<std::string> texts;
  texts.reserve(findings.size());
  for (const DoctorFinding& finding : findings) texts.push_back(finding.topic + ": " + finding.text);
  return texts;
}

}  // namespace fleetrun::launch::testing
