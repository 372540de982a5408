#include "launch/doctor/doctor_table.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "base/text/printable.h"
#include "launch/nodes/terms.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kWidth = 80;
constexpr int kMostInMatrix = 14;  // nodes: wider matrices show only rows with problems
constexpr double kGiBOfTable = 1 << 30;

std::string cell_text(const std::string& text, std::size_t width) {
  constexpr std::size_t kDots = 3;
  return text.size() <= width ? printable(text) : printable_start(text, width - kDots);
}

std::string nodes_table(const Examination& examination) {
  std::string text =
      fmt::format("{:>4}  {:<15} {:<14} {:>5} {:>8} {:>7} {:>7} {:>6} {:>4}\n", "NODE", "ADDRESS", "HOST",
                  "CORES", "GFLOP/s", "MEM GiB", "SHM GiB", "CLOCK", "GPUS");
  for (int node = 0; node < std::ssize(examination.nodes); ++node) {
    const NodeExamination& one = examination.nodes[static_cast<std::size_t>(node)];
    const std::string address = cell_text(one.address.empty() ? "-" : one.address, 15);
    if (!one.facts) {
      text += fmt::format("{:>4}  {:<15} {:<14}\n", node, address, "no answer");
      continue;
    }
    const NodeFacts& facts = *one.facts;
    text += fmt::format("{:>4}  {:<15} {:<14} {:>5} {:>8} {:>7.1f} {:>7.1f} {:>6} {:>4}\n", node, address,
                        cell_text(facts.host, 14), facts.cores,
                        one.speed ? fmt::format("{:.1f}", one.speed->gflops) : "-",
                        static_cast<double>(facts.memory_free) / kGiBOfTable,
                        static_cast<double>(facts.shm_free) / kGiBOfTable,
                        one.clock ? fmt::format("{:+.2f}", one.clock->seconds) : "-",
                        facts.gpus.empty() ? "none" : std::to_string(facts.gpus.size()));
  }
  return text;
}

const LinkFacts* link_between(const Examination& examination, int from, int to) {
  for (const LinkFacts& link : examination.links)
    if (link.from == from && link.to == to) return &link;
  return nullptr;
}

const Reach* reach_between(const Examination& examination, int from, int to) {
  for (const Reach& reach : examination.reach)
    if (reach.from == from && reach.to == to) return &reach;
  return nullptr;
}

using Cell = std::string (*)(const LinkFacts&);
std::string matrix(const Examination& examination, const std::string& title, Cell cell) {
  const int nodes = static_cast<int>(examination.nodes.size());
  std::string text = "\n" + title + "\n     ";
  for (int to = 0; to < nodes; ++to) text += fmt::format("{:>5}", to);
  text += "\n";
  for (int from = 0; from < nodes; ++from) {
    text += fmt::format("{:>4} ", from);
    for (int to = 0; to < nodes; ++to) {
      const LinkFacts* const link = link_between(examination, from, to);
      const Reach* const reach = reach_between(examination, from, to);
      std::string shown = from == to || reach == nullptr ? "." : reach->problem.empty() ? "yes" : "NO";
      if (link != nullptr && link->problem.empty()) shown = cell(*link);
      text += fmt::format("{:>5}", shown);
    }
    text += "\n";
  }
  return text;
}

std::string short_number(double value) {
  return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

std::string network_tables(const Examination& examination) {
  const auto nodes = std::ssize(examination.nodes);
  if (nodes < 2) return "";
  if (nodes > kMostInMatrix) {
    const auto cut = std::count_if(examination.reach.begin(), examination.reach.end(),
                                   [](const Reach& reach) { return !reach.problem.empty(); });
    return fmt::format("\n{} of {} connections between nodes fail; --json has all of them\n", cut,
                       examination.reach.size());
  }
  return matrix(examination, "microseconds of a round trip, from each row's node to each column's:",
                [](const LinkFacts& link) { return short_number(link.latency * 1e6); }) +
         matrix(examination, "MB/s, from each row's node to each column's:", [](const LinkFacts& link) {
           return short_number(link.bytes_per_s / 1e6);
         });
}

std::string findings_text(const std::vector<DoctorFinding>& findings) {
  const auto serious = std::count_if(findings.begin(), findings.end(),
                                     [](const DoctorFinding& finding) { return finding.serious; });
  std::string text = "\n" + (serious == 0 ? "nothing wrong was found" : plural(serious, "finding")) + "\n";
  for (const DoctorFinding& finding : findings) {
    std::string indent = finding.serious ? "* " : "  note: ";
    for (const std::string& line : wrap_words(finding.text, kWidth - indent.size())) {
      text += indent + line + "\n";
      indent.assign(indent.size(), ' ');
    }
  }
  return text;
}

JsonValue facts_value(NodeFacts facts) {
  for (auto& [name, value] : facts.terms) value = shown_term(name, value);
  return to_value(facts);
}

JsonValue node_value(const NodeExamination& node) {
  JsonValue value = JsonValue::object({{"address", node.address}});
  if (!node.facts) {
    value.add("silent", node.silent);
    return value;
  }
  value.add("facts", facts_value(*node.facts));
  if (node.clock)
    value.add("clock",
              JsonValue::object({{"offset_seconds", node.clock->seconds}, {"error", node.clock->error}}));
  if (node.speed)
    value.add("cpu", JsonValue::object({{"gflops", node.speed->gflops},
                                        {"share", node.speed->share},
                                        {"others", node.speed->others}}));
  return value;
}

}  // namespace

std::vector<std::string> wrap_words(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > width)
      lines.push_back(word);
    else
      lines.back() += " " + word;
  }
  return lines;
}

std::string doctor_table(const Examination& examination, const std::vector<DoctorFinding>& findings) {
  return printable_lines(nodes_table(examination) + network_tables(examination) + findings_text(findings));
}

std::string doctor_json(const Examination& examination, const std::vector<DoctorFinding>& findings) {
  JsonValue nodes = JsonValue::list({}), reach = nodes, links = nodes, found = nodes;
  for (const NodeExamination& node : examination.nodes) nodes.items.push_back(node_value(node));
  for (const Reach& one : examination.reach)
    reach.items.push_back(JsonValue::object({{"from", one.from}, {"to", one.to}, {"problem", one.problem}}));
  for (const LinkFacts& link : examination.links) links.items.push_back(to_value(link));
  for (const DoctorFinding& finding : findings)
    found.items.push_back(JsonValue::object({{"nodes", finding.nodes},
                                             {"topic", finding.topic},
                                             {"serious", finding.serious},
                                             {"text", finding.text}}));
  return to_json_lines(
      JsonValue::object({{"nodes", nodes}, {"reach", reach}, {"links", links}, {"findings", found}}));
}

}  // namespace fleetrun::launch
