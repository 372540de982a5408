#include "launch/doctor/examine_nodes.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/json/json_reader.h"
#include "launch/doctor/judge.h"
#include "launch/doctor/tournament.h"

namespace fleetrun::launch {
namespace {

constexpr auto kProbePatience = std::chrono::milliseconds(3000);  // more than any probe takes
constexpr int kMostRounds = 7;                                    // of the tournament: 5 s
constexpr int kCpuTurns = 8;         // nodes measure their CPUs in so many turns, 0.25 s each
constexpr int kClockTries = 5;       // round trips; the fastest counts
constexpr int kLeastCpuRepeats = 2;  // also when the time is up: one measurement alone proves nothing
constexpr int kCpuRepeats = 4;       // before a node is called slow
constexpr int kLinkRepeats = 3;      // before the bandwidth of a node is called low
constexpr double kNanoseconds = 1e9;

using Questions = std::map<int, JsonValue>;  // by node
using Answers = std::map<int, JsonValue>;    // of the nodes that answered

JsonValue question(const char* probe) { return JsonValue::object({{"probe", probe}}); }

class Examiner {
 public:
  Examiner(EventLoop& loop, NodeSession& session) : loop_(loop), session_(session) {}

  // Asks at the same time, and waits for all answers.
  Answers ask(const Questions& questions) {
    Answers answers;
    std::size_t open = questions.size();
    for (const auto& [node, text] : questions)
      session_.ask(
          node, to_json(text), "fleetrun doctor",
          [&, node = node](const std::optional<std::string>& answer) {
            --open;
            if (answer) answers[node] = read_json(*answer).root;
          },
          kProbePatience);
    while (open > 0) loop_.run_one();
    return answers;
  }

 private:
  EventLoop& loop_;
  NodeSession& session_;
};

void ask_facts(Examiner& examiner, const Placed& placed, const ExaminationLimits& limits,
               Examination& examination) {
  Questions questions;
  for (int node = 0; node < std::ssize(placed.nodes); ++node) {
    const NodePlace& place = placed.nodes[static_cast<std::size_t>(node)];
    NodeExamination& one = examination.nodes.emplace_back();
    one.address = place.address;
    one.silent = place.host.empty() ? fmt::format("it did not join within {:g} s ({})",
                                                  in_seconds(limits.waited), limits.waited_by)
                                    : "it joined, but does not answer";
    if (!place.host.empty()) questions[node] = question("facts");
  }
  for (const auto& [node, answer] : examiner.ask(questions)) {
    NodeExamination& one = examination.nodes[static_cast<std::size_t>(node)];
    one.facts = read_node_facts(answer);
    if (one.facts->probe.host.empty()) one.facts->probe.host = one.address;
  }
}

std::vector<int> nodes_with_facts(const Examination& examination) {
  std::vector<int> nodes;
  for (int node = 0; node < std::ssize(examination.nodes); ++node)
    if (examination.nodes[static_cast<std::size_t>(node)].facts) nodes.push_back(node);
  return nodes;
}

const Endpoint& probe_of(const Examination& examination, int node) {
  return examination.nodes[static_cast<std::size_t>(node)].facts->probe;
}

void ask_reach(Examiner& examiner, Examination& examination) {
  const std::vector<int> nodes = nodes_with_facts(examination);
  Questions questions;
  for (const int from : nodes) {
    JsonValue to = JsonValue::list({});
    for (const int node : nodes)
      to.items.push_back(to_value(node == from ? Endpoint() : probe_of(examination, node)));
    questions[from] = JsonValue::object({{"probe", "reach"}, {"to", to}});
  }
  for (const auto& [from, answer] : examiner.ask(questions)) {
    const JsonValue* const problems = answer.find("problems", JsonValue::Kind::list);
    if (problems == nullptr || problems->items.size() != nodes.size()) continue;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i] != from) examination.reach.push_back({from, nodes[i], problems->items[i].text});
  }
}

bool reaches(const Examination& examination, int from, int to) {
  return std::any_of(examination.reach.begin(), examination.reach.end(), [&](const Reach& reach) {
    return reach.from == from && reach.to == to && reach.problem.empty();
  });
}

// Measures these links at the same time. No node is part of two of them.
std::vector<LinkFacts> ask_links(Examiner& examiner, const Examination& examination,
                                 const std::vector<Pair>& pairs) {
  Questions questions;
  std::map<int, int> ends;
  for (const auto& [from, to] : pairs) {
    if (!reaches(examination, from, to)) continue;
    ends[from] = to;
    questions[from] = JsonValue::object({{"probe", "link"}, {"to", to_value(probe_of(examination, to))}});
  }
  std::vector<LinkFacts> links;
  for (const auto& [from, answer] : examiner.ask(questions)) {
    links.push_back(read_link_facts(answer));
    links.back().from = from;
    links.back().to = ends[from];
  }
  return links;
}

void play_tournament(Examiner& examiner, const DoctorSays& say, Examination& examination) {
  const auto rounds = plan_tournament(nodes_with_facts(examination), kMostRounds);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    say(fmt::format("measuring links, round {} of {}", i + 1, rounds.size()));
    std::vector<Pair> back;
    for (const auto& [one, other] : rounds[i]) back.emplace_back(other, one);
    for (const auto& pairs : {rounds[i], back})
      for (LinkFacts& link : ask_links(examiner, examination, pairs))
        examination.links.push_back(std::move(link));
  }
}

// A link is bad only if it is bad twice, and cannot be used only if it fails twice.
void repeat_bad_links(Examiner& examiner, TimePoint deadline, Examination& examination) {
  for (LinkFacts& link : examination.links) {
    if (!is_suspicious(link) || Clock::now() >= deadline) continue;
    for (const LinkFacts& again : ask_links(examiner, examination, {{link.from, link.to}}))
      if (!is_suspicious(again) || again.problem.empty()) link = again;
  }
}

// Programs beside the nodes may slow a transfer down, and nothing makes it too fast: the fastest one counts.
void repeat_narrow_links(Examiner& examiner, TimePoint deadline, Examination& examination) {
  for (int i = 0; i < kLinkRepeats; ++i)
    for (const Pair& ends : narrow_links(examination)) {
      if (Clock::now() >= deadline) return;
      for (const LinkFacts& again : ask_links(examiner, examination, {ends}))
        for (LinkFacts& link : examination.links)
          if (Pair(link.from, link.to) == ends)
            link.bytes_per_s = std::max(link.bytes_per_s, again.bytes_per_s);
    }
}

std::map<int, CpuSpeed> ask_speed(Examiner& examiner, const std::vector<int>& nodes) {
  std::map<int, CpuSpeed> speeds;
  Questions questions;
  for (const int node : nodes) questions[node] = question("cpu");
  for (const auto& [node, answer] : examiner.ask(questions)) {
    const JsonMember *gflops = answer.find("gflops"), *share = answer.find("share"),
                     *others = answer.find("others");
    if (gflops == nullptr || share == nullptr || others == nullptr) continue;
    speeds[node] = {.gflops = gflops->value.number,
                    .share = share->value.number,
                    .others = others->value.number,
                    .beside = {}};
  }
  return speeds;
}

// Measures a slow node, then a node of usual speed, then the slow node again: the speed of a machine that all nodes share can change.
void repeat_slow_node(Examiner& examiner, int node, Examination& examination) {
  const std::optional<int> usual = usual_node(examination, node);
  if (!usual) return;
  const auto before = ask_speed(examiner, {node}), there = ask_speed(examiner, {*usual}),
             after = ask_speed(examiner, {node});
  if (before.empty() || there.empty() || after.empty()) return;
  take_confirmation({.before = before.at(node), .usual = there.at(*usual), .after = after.at(node)}, node,
                    *usual, examination);
}

// One node at a time, because nodes may share a machine; more at a time only if there are many.
void ask_speeds(Examiner& examiner, TimePoint deadline, Examination& examination) {
  const std::vector<int> nodes = nodes_with_facts(examination);
  const std::size_t together = (nodes.size() + kCpuTurns - 1) / kCpuTurns;
  for (std::size_t i = 0; i < nodes.size(); i += together)
    for (const auto& [node, speed] : ask_speed(
             examiner, {nodes.begin() + static_cast<std::ptrdiff_t>(i),
                        nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), i + together))}))
      examination.nodes[static_cast<std::size_t>(node)].speed = speed;
  for (int i = 0; i < kCpuRepeats; ++i)
    for (const int node : slow_nodes(examination))
      if (i < kLeastCpuRepeats || Clock::now() < deadline) repeat_slow_node(examiner, node, examination);
}

// Those that the examination has lost since they told of themselves. What it measured of their links tells of the loss, not of the network.
void leave_out_lost_nodes(Examiner& examiner, Examination& examination) {
  Questions questions;
  for (const int node : nodes_with_facts(examination)) questions[node] = question("clock");
  const Answers answers = examiner.ask(questions);
  const auto is_lost = [&](int node) { return questions.count(node) != 0 && answers.count(node) == 0; };
  for (int node = 0; node < std::ssize(examination.nodes); ++node)
    if (is_lost(node))
      examination.nodes[static_cast<std::size_t>(node)] = {
          .address = examination.nodes[static_cast<std::size_t>(node)].address,
          .silent = "it joined, and was stopped or lost during the examination"};
  const auto has_lost_end = [&](const auto& link) { return is_lost(link.from) || is_lost(link.to); };
  std::erase_if(examination.reach, has_lost_end);
  std::erase_if(examination.links, has_lost_end);
}

double seconds_of_day() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The node read its clock somewhere between question and answer.
void ask_clocks(Examiner& examiner, Examination& examination) {
  for (const int node : nodes_with_facts(examination)) {
    auto& clock = examination.nodes[static_cast<std::size_t>(node)].clock;
    for (int i = 0; i < kClockTries; ++i) {
      const double sent = seconds_of_day();
      const TimePoint start = Clock::now();
      const Answers answers = examiner.ask({{node, question("clock")}});
      const double half = in_seconds(Clock::now() - start) / 2;
      if (answers.empty()) break;
      const JsonMember* const now = answers.begin()->second.find("now");
      if (now == nullptr || (clock && clock->error <= half)) continue;
      clock = {now->value.number / kNanoseconds - (sent + half), half};
    }
  }
}

}  // namespace

Examination examine_nodes(EventLoop& loop, NodeSession& session, const ExaminationLimits& limits,
                          const DoctorSays& say) {
  Examiner examiner(loop, session);
  Examination examination;
  say("asking each node about itself");
  ask_facts(examiner, session.placed(), limits, examination);
  ask_clocks(examiner, examination);
  say("connecting each node to each other");
  ask_reach(examiner, examination);
  play_tournament(examiner, say, examination);
  repeat_bad_links(examiner, limits.deadline, examination);
  repeat_narrow_links(examiner, limits.deadline, examination);
  say("measuring CPUs, one node at a time");
  ask_speeds(examiner, limits.deadline, examination);
  leave_out_lost_nodes(examiner, examination);
  return examination;
}

void tell_nodes(EventLoop& loop, NodeSession& session, const DoctorsWord& word) {
  Questions questions;
  for (int node = 1; node < std::ssize(session.placed().nodes); ++node)
    if (!session.placed().nodes[static_cast<std::size_t>(node)].host.empty())
      questions[node] = JsonValue::object({{"probe", "end"}, {"code", word.code}, {"lines", word.lines}});
  Examiner(loop, session).ask(questions);
}

}  // namespace fleetrun::launch
