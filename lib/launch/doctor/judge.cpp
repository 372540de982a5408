#include "launch/doctor/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/doctor/median.h"
#include "launch/nodes/terms.h"

namespace fleetrun::launch {
namespace {

constexpr double kMiB = 1 << 20;
constexpr std::int64_t kLeastDisk = std::int64_t{256} << 20;           // bytes free: logs and one checkpoint
constexpr std::int64_t kLeastShm = std::int64_t{64} << 20;             // what a container gets by default
constexpr std::int64_t kLeastMemoryPerRank = std::int64_t{256} << 20;  // a small model with its runtime
constexpr std::int64_t kLeastFiles = 1024;                             // besides those of the ranks
constexpr std::int64_t kFilesPerRank = 16;
constexpr double kMostClockOffset = 0.5;  // seconds; NTP keeps clocks within some milliseconds
constexpr double kMostOthers = 0.1;       // of all cores, used by other programs while a CPU is measured
constexpr std::size_t kMostTerms = 20;    // differences that are named

std::vector<int> examined(const Examination& examination) {
  std::vector<int> nodes;
  for (int node = 0; node < std::ssize(examination.nodes); ++node)
    if (examination.nodes[static_cast<std::size_t>(node)].facts) nodes.push_back(node);
  return nodes;
}

const NodeFacts& facts_of(const Examination& examination, int node) {
  return *examination.nodes[static_cast<std::size_t>(node)].facts;
}

// Collects the findings about single nodes.
class Findings {
 public:
  explicit Findings(const Examination& examination) : examination_(examination) {}

  void add(int node, const char* topic, const std::string& text, bool serious = true) {
    found_.push_back({{node}, topic, fmt::format("{}: {}", name_of_node(examination_, node), text), serious});
  }
  std::vector<DoctorFinding> take() { return std::move(found_); }

 private:
  const Examination& examination_;
  std::vector<DoctorFinding> found_;
};

// The value that most nodes have; of two equally frequent ones, that of the first node.
std::string usual_value(const std::vector<std::string>& values) {
  std::string usual = values.front();
  for (const std::string& value : values)
    if (std::count(values.begin(), values.end(), value) > std::count(values.begin(), values.end(), usual))
      usual = value;
  return usual;
}

using Value = std::string (*)(const NodeFacts&);
void compare(const Examination& examination, const char* topic, const char* what, Value value,
             Findings& found) {
  std::vector<std::string> values;
  const std::vector<int> nodes = examined(examination);
  values.reserve(nodes.size());
  for (const int node : nodes) values.push_back(value(facts_of(examination, node)));
  if (values.empty()) return;
  const std::string usual = usual_value(values);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (values[i] != usual)
      found.add(nodes[i], topic, fmt::format("{} is {}, and {} on the other nodes", what, values[i], usual));
}

std::string term_called(const NodeFacts& facts, const std::string& name) {
  for (const auto& [each, value] : facts.terms)
    if (each == name) return value.empty() ? "nothing" : value;
  return "nothing";
}

// A node that cannot read its job file has none.
void compare_terms(const Examination& examination, Findings& found) {
  std::vector<int> nodes = examined(examination);
  std::erase_if(nodes, [&](int node) { return facts_of(examination, node).terms.empty(); });
  std::set<std::string> names;
  for (const int node : nodes)
    for (const auto& [name, value] : facts_of(examination, node).terms) names.insert(name);
  std::size_t differences = 0;
  for (const std::string& name : names) {
    std::vector<std::string> values;
    values.reserve(nodes.size());
    for (const int node : nodes) values.push_back(term_called(facts_of(examination, node), name));
    const std::string usual = usual_value(values);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (values[i] != usual && ++differences <= kMostTerms)
        found.add(nodes[i], "settings",
                  fmt::format("{} is {}, and {} on the other nodes", name, shown_term(name, values[i]),
                              shown_term(name, usual)));
  }
}

void judge_folders(int node, const NodeFacts& facts, Findings& found) {
  std::set<std::string> told;
  for (const FolderFacts& folder : facts.folders) {
    if (!told.insert(folder.path).second) continue;
    if (!folder.problem.empty())
      found.add(node, "disk", fmt::format("{} ({}): {}", folder.path, folder.purpose, folder.problem));
    else if (folder.free_bytes < kLeastDisk)
      found.add(
          node, "disk",
          fmt::format("the disk of {} ({}) has {:.0f} MiB free, wanted {:.0f} MiB", folder.path,
                      folder.purpose, static_cast<double>(folder.free_bytes) / kMiB, kLeastDisk / kMiB));
  }
}

void judge_ports(int node, const NodeFacts& facts, Findings& found) {
  std::map<std::string, std::vector<int>> required, usual;
  for (const TakenPort& port : facts.taken)
    (port.required ? required : usual)[port.owner].push_back(port.port);
  const auto by = [](const std::string& owner) { return owner.empty() ? "another program" : owner; };
  for (const auto& [owner, ports] : required)
    found.add(node, "ports", fmt::format("port {} is taken by {}", fmt::join(ports, ", "), by(owner)));
  for (const auto& [owner, ports] : usual)
    found.add(
        node, "ports",
        fmt::format("port {} is taken by {}; the ranks get other ports", fmt::join(ports, ", "), by(owner)),
        false);
}

void judge_memory(int node, const NodeFacts& facts, Findings& found) {
  if (facts.shm_free < kLeastShm)
    found.add(node, "shm",
              fmt::format("/dev/shm has {:.0f} MiB free, wanted {:.0f} MiB",
                          static_cast<double>(facts.shm_free) / kMiB, kLeastShm / kMiB));
  const std::int64_t wanted = kLeastMemoryPerRank * std::max(1, facts.ranks);
  if (facts.memory_free < wanted)
    found.add(node, "memory",
              fmt::format("{:.0f} MiB of memory are free, wanted {:.0f} MiB for {} ranks",
                          static_cast<double>(facts.memory_free) / kMiB, static_cast<double>(wanted) / kMiB,
                          facts.ranks));
  const std::int64_t files = kLeastFiles + kFilesPerRank * facts.ranks;
  if (facts.open_files < files)
    found.add(node, "limits",
              fmt::format("a process may open {} files (ulimit -Hn), wanted {}", facts.open_files, files));
}

// A cgroup may stop the threads of the run, too.
bool is_limited(const NodeExamination& node) { return node.facts && node.facts->cpu_limit > 0; }

double usual_speed(const Examination& examination) {
  std::vector<double> speeds;
  for (const NodeExamination& node : examination.nodes)
    if (node.speed) speeds.push_back(judged_speed(node));
  return upper_median(speeds);
}

// Programs beside us also slow the caches and the other thread of a core, so a speed beside them proves nothing.
bool is_disturbed(const NodeExamination& node) {
  return !is_limited(node) && (node.speed->share < kSlowShare || node.speed->others > kMostOthers);
}

std::string describe_disturbance(const CpuSpeed& speed) {
  return speed.share < kSlowShare ? fmt::format("one thread got only {:.0f} % of a core", 100 * speed.share)
                                  : fmt::format("{:.0f} % of all its cores", 100 * speed.others);
}

// What a node should reach.
double wanted_speed(const Examination& examination, const NodeExamination& node) {
  return node.speed->beside.value_or(usual_speed(examination));
}

}  // namespace

// Other programs may end before the run, so the time that they take does not count.
double judged_speed(const NodeExamination& node) {
  constexpr double kLeastShare = 0.01;
  return is_limited(node) ? node.speed->gflops
                          : node.speed->gflops / std::max(kLeastShare, node.speed->share);
}

std::string name_of_node(const Examination& examination, int node) {
  const NodeExamination& one = examination.nodes[static_cast<std::size_t>(node)];
  std::vector<std::string> names;
  if (!one.address.empty()) names.push_back(one.address);
  if (one.facts && one.facts->host != one.address) names.push_back(one.facts->host);
  return names.empty() ? fmt::format("node {}", node)
                       : fmt::format("node {} ({})", node, fmt::join(names, ", "));
}

std::vector<DoctorFinding> judge_presence(const Examination& examination) {
  Findings found(examination);
  const bool are_enough =
      examination.least_nodes > 0 && std::ssize(examined(examination)) >= examination.least_nodes;
  for (int node = 0; node < std::ssize(examination.nodes); ++node) {
    const NodeExamination& one = examination.nodes[static_cast<std::size_t>(node)];
    if (!one.facts) found.add(node, "absent", one.silent, !are_enough);
  }
  return found.take();
}

std::vector<DoctorFinding> judge_sameness(const Examination& examination) {
  Findings found(examination);
  compare(
      examination, "fleetrun", "fleetrun --version", [](const NodeFacts& facts) { return facts.version; },
      found);
  compare(
      examination, "fleetrun", "the hash of the program fleetrun",
      [](const NodeFacts& facts) { return facts.binary; }, found);
  for (const int node : examined(examination))
    if (const std::string& problem = facts_of(examination, node).job_problem; !problem.empty())
      found.add(node, "job", problem);
  compare_terms(examination, found);
  compare(
      examination, "data", "the hash of the data lists",
      [](const NodeFacts& facts) { return facts.data.empty() ? std::string("nothing") : facts.data; }, found);
  return found.take();
}

std::vector<DoctorFinding> judge_resources(const Examination& examination) {
  Findings found(examination);
  for (const int node : examined(examination)) {
    const NodeFacts& facts = facts_of(examination, node);
    judge_folders(node, facts, found);
    judge_ports(node, facts, found);
    judge_memory(node, facts, found);
  }
  return found.take();
}

std::vector<DoctorFinding> judge_devices(const Examination& examination) {
  Findings found(examination);
  compare(
      examination, "gpus", "the number of GPUs",
      [](const NodeFacts& facts) { return std::to_string(facts.gpus.size()); }, found);
  compare(
      examination, "infiniband", "the number of active InfiniBand ports",
      [](const NodeFacts& facts) { return std::to_string(facts.infiniband_active); }, found);
  for (const int node : examined(examination)) {
    const NodeFacts& facts = facts_of(examination, node);
    for (const std::string& problem : facts.gpu_problems) found.add(node, "gpus", problem);
    for (const std::string& problem : facts.nccl) found.add(node, "nccl", problem, !facts.gpus.empty());
    if (facts.infiniband_active > 0 && facts.locked_bytes >= 0)
      found.add(
          node, "limits",
          fmt::format("a process may lock {} bytes of memory (ulimit -Hl), which InfiniBand needs unlimited",
                      facts.locked_bytes));
  }
  return found.take();
}

// Compared with the median, so that one wrong clock is named even if it is that of the first node.
std::vector<DoctorFinding> judge_clocks(const Examination& examination) {
  Findings found(examination);
  std::vector<double> offsets;
  for (const NodeExamination& node : examination.nodes)
    if (node.clock) offsets.push_back(node.clock->seconds);
  if (offsets.size() < 2) return {};
  std::sort(offsets.begin(), offsets.end());
  const double usual = offsets.size() == 2 ? 0 : offsets[offsets.size() / 2];
  for (int node = 0; node < std::ssize(examination.nodes); ++node) {
    const auto& clock = examination.nodes[static_cast<std::size_t>(node)].clock;
    if (!clock) continue;
    const double off = clock->seconds - usual;
    if (std::abs(off) - clock->error <= kMostClockOffset) continue;
    found.add(
        node, "clock",
        fmt::format("its clock is {:.2f} s {} that of {}", std::abs(off), off > 0 ? "ahead of" : "behind",
                    offsets.size() == 2 ? "node 0" : "the other nodes"));
  }
  return found.take();
}

std::vector<int> slow_nodes(const Examination& examination) {
  std::vector<int> slow;
  for (int node = 0; node < std::ssize(examination.nodes); ++node) {
    const NodeExamination& one = examination.nodes[static_cast<std::size_t>(node)];
    if (one.speed && !is_disturbed(one) && judged_speed(one) < kSlowShare * wanted_speed(examination, one))
      slow.push_back(node);
  }
  return slow;
}

std::optional<int> usual_node(const Examination& examination, int except) {
  std::optional<int> nearest;
  const double usual = usual_speed(examination);
  const auto distance = [&](int node) {
    return std::abs(judged_speed(examination.nodes[static_cast<std::size_t>(node)]) - usual);
  };
  for (int node = 0; node < std::ssize(examination.nodes); ++node)
    if (node != except && examination.nodes[static_cast<std::size_t>(node)].speed &&
        (!nearest || distance(node) < distance(*nearest)))
      nearest = node;
  return nearest;
}

void take_confirmation(const Confirmation& speeds, int node, int usual, Examination& examination) {
  NodeExamination& one = examination.nodes[static_cast<std::size_t>(node)];
  NodeExamination other = examination.nodes[static_cast<std::size_t>(usual)];
  other.speed = speeds.usual;
  if (is_limited(one) && is_disturbed(other)) return;  // it would make the limit look harmless
  NodeExamination first = one, second = one;
  first.speed = speeds.before;
  second.speed = speeds.after;
  one.speed = judged_speed(first) < judged_speed(second) ? speeds.after : speeds.before;
  one.speed->beside = judged_speed(other);
}

std::vector<DoctorFinding> judge_speeds(const Examination& examination) {
  Findings found(examination);
  for (const int node : slow_nodes(examination)) {
    const NodeExamination& one = examination.nodes[static_cast<std::size_t>(node)];
    std::string text = fmt::format("its CPU is slow: {:.1f} GFLOP/s, and {:.1f} on the median node",
                                   judged_speed(one), wanted_speed(examination, one));
    if (is_limited(one)) text += fmt::format("; its cgroup allows {:g} cores", one.facts->cpu_limit);
    found.add(node, "cpu", text);
  }
  for (int node = 0; node < std::ssize(examination.nodes); ++node) {
    const NodeExamination& one = examination.nodes[static_cast<std::size_t>(node)];
    if (one.speed && is_disturbed(one))
      found.add(node, "busy", "other programs use its CPUs: " + describe_disturbance(*one.speed), false);
  }
  return found.take();
}

std::vector<DoctorFinding> judge(const Examination& examination) {
  std::vector<DoctorFinding> all;
  for (const auto part : {judge_presence, judge_reach, judge_links, judge_sameness, judge_resources,
                          judge_devices, judge_clocks, judge_speeds})
    for (DoctorFinding& finding : part(examination)) all.push_back(std::move(finding));
  std::stable_sort(all.begin(), all.end(),
                   [](const DoctorFinding& a, const DoctorFinding& b) { return a.serious && !b.serious; });
  return all;
}

}  // namespace fleetrun::launch
