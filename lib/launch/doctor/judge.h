// What is wrong with the nodes, from an examination. Decides, and touches nothing.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/doctor/examination.h"

namespace fleetrun::launch {

struct DoctorFinding {
  std::vector<int> nodes;  // the odd ones
  std::string topic;       // "clock", "firewall", ...: one word for programs
  std::string text;        // "node 2 (10.0.0.3, gamma): ..."
  bool serious = true;     // the run would fail or be slow; otherwise a remark

  bool operator==(const DoctorFinding&) const = default;
};

constexpr double kSlowShare = 0.9;  // of the median speed: a CPU below it is slow

// All findings, the serious ones first.
std::vector<DoctorFinding> judge(const Examination& examination);

// What judge() consists of.
std::vector<DoctorFinding> judge_presence(const Examination& examination);
std::vector<DoctorFinding> judge_sameness(const Examination& examination);
std::vector<DoctorFinding> judge_resources(const Examination& examination);
std::vector<DoctorFinding> judge_devices(const Examination& examination);
std::vector<DoctorFinding> judge_clocks(const Examination& examination);
std::vector<DoctorFinding> judge_speeds(const Examination& examination);
std::vector<DoctorFinding> judge_reach(const Examination& examination);
std::vector<DoctorFinding> judge_links(const Examination& examination);

// Whose speed another measurement must confirm.
std::vector<int> slow_nodes(const Examination& examination);
// The other node whose speed is nearest to the median. Nothing if no other node has a speed.
std::optional<int> usual_node(const Examination& examination, int except);
double judged_speed(const NodeExamination& node);  // in GFLOP/s; the node has a speed
// A slow node, measured before and after a usual one.
struct Confirmation {
  CpuSpeed before, usual, after;
};
// Nothing makes a CPU too fast, so the faster one of the two measurements becomes the speed of the node.
void take_confirmation(const Confirmation& speeds, int node, int usual, Examination& examination);
// Whether a second measurement must confirm the loss or the stall of this link.
bool is_suspicious(const LinkFacts& link);
// Of each node with a low bandwidth, its fastest link (from, to), which other measurements must confirm.
std::vector<std::pair<int, int>> narrow_links(const Examination& examination);

std::string name_of_node(const Examination& examination, int node);  // "node 2 (10.0.0.3, gamma)"

}  // namespace fleetrun::launch
