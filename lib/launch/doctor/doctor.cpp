#include "launch/doctor/doctor.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/system/pipe.h"
#include "base/system/standard_output.h"
#include "launch/doctor/answer_probe.h"
#include "launch/doctor/cpu_speed.h"
#include "launch/doctor/doctor_table.h"
#include "launch/doctor/examine_nodes.h"
#include "launch/doctor/judge.h"
#include "launch/doctor/probe_server.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/node_session.h"
#include "launch/nodes/terms.h"
#include "launch/starters/start_problem.h"

namespace fleetrun::launch {
namespace {

constexpr auto kRepeatTime =
    std::chrono::milliseconds(6500);  // of the examination; the promise is 10 s with all
constexpr auto kAlone = std::chrono::milliseconds(250);
constexpr auto kMostExamination = std::chrono::seconds(30);  // then another node gives up

void say(const std::string& line) { log_line("fleetrun", "doctor: " + line); }

// All nodes are examined, those that would stand by as spare nodes, too.
NodeSessionOptions session_options(const DoctorRequest& request) {
  Membership members = *request.members;
  members.spares = 0;
  return {.members = members,
          .key = find_node_key(request.options, request.environment),
          .join = {.address = members.host,
                   .host = request.host,
                   .logs = "",
                   .node_rank = members.node_rank,
                   .device_ids = request.cluster.device_ids,
                   .terms = {{kDoctorTerm, request.output == DoctorOutput::findings ? kPreflight : kDoctor}}},
          .run_id = "doctor",
          .command = "",
          .join_timeout = request.join_timeout,
          .elastic_timeout = request.options.elastic_timeout.value,
          .possible_successors = request.possible_successors,
          .looks_for_run = request.output == DoctorOutput::findings,
          .without_missing = true,
          .restart = {}};
}

int code_for(const std::vector<DoctorFinding>& findings) {
  const bool bad = std::any_of(findings.begin(), findings.end(),
                               [](const DoctorFinding& finding) { return finding.serious; });
  return bad ? static_cast<int>(ErrorKind::temporary) : 0;
}

void print_findings(const std::vector<DoctorFinding>& findings) {
  for (const DoctorFinding& finding : findings) say((finding.serious ? "" : "note: ") + finding.text);
  if (code_for(findings) == 0) say("nothing wrong was found");
}

int show(const DoctorRequest& request, const Examination& examination,
         const std::vector<DoctorFinding>& findings) {
  if (request.output == DoctorOutput::findings)
    print_findings(findings);
  else if (request.output == DoctorOutput::json)
    print_answer(doctor_json(examination, findings));
  else
    print_answer(doctor_table(examination, findings));
  return code_for(findings);
}

DoctorsWord word_of(const std::vector<DoctorFinding>& findings) {
  DoctorsWord word = {.code = code_for(findings), .lines = {}};
  constexpr std::size_t kMostLines = 20;  // the first node shows all
  for (const DoctorFinding& finding : findings)
    if (finding.serious && word.lines.size() < kMostLines) word.lines.push_back(finding.text);
  return word;
}

// A node that joins an elastic run. Doctors agree with each other in everything that they compare.
bool has_met_a_run(const DoctorRequest& request, const NodeFailure& failure) {
  return request.output == DoctorOutput::findings && is_elastic(request.options) &&
         failure.exit_code == static_cast<int>(ErrorKind::protocol);
}

int examine_alone(const DoctorRequest& request, NodeFacts facts) {
  Examination examination;
  NodeExamination& node = examination.nodes.emplace_back();
  node.address = request.cluster.host;
  node.facts = std::move(facts);
  node.speed = measure_cpu(kAlone);
  return show(request, examination, judge(examination));
}

int lead(const DoctorRequest& request, EventLoop& loop, NodeSession& session) {
  const bool elastic = is_elastic(request.options);
  const ExaminationLimits limits = {
      .waited = elastic ? request.options.elastic_timeout.value : request.join_timeout,
      .waited_by = elastic ? "--elastic_timeout" : "--join_timeout",
      .deadline = Clock::now() + kRepeatTime};
  Examination examination = examine_nodes(loop, session, limits, say);
  if (elastic) examination.least_nodes = request.members->least;
  const std::vector<DoctorFinding> findings = judge(examination);
  session.stop_listening();  // the nodes meet there again when a run follows
  tell_nodes(loop, session, word_of(findings));
  return show(request, examination, findings);
}

// Answers until the first node has told the end.
int follow(const DoctorRequest& request, EventLoop& loop, NodeSession& session,
           const std::optional<DoctorsWord>& word) {
  bool late = false;
  Timer timer(loop);
  timer.call_at(Clock::now() + kMostExamination, [&late] { late = true; });
  while (!word && session.is_connected() && !late) loop.run_one();
  if (!word)
    throw Error(ErrorKind::temporary,
                fmt::format("{} has not finished the examination", session.name_of_first()));
  for (const std::string& line : word->lines) say(line);
  const std::string table = request.output == DoctorOutput::findings
                                ? ""
                                : fmt::format("; {} shows the table", session.name_of_first());
  say((word->code == 0 ? "nothing wrong was found" : "something is wrong") + table);
  return word->code;
}

int examine_together(const DoctorRequest& request, NodeFacts facts) {
  const Pipe front = make_pipe();  // both ends stay open, because here no front process can be lost
  std::vector<int> ports;
  if (!request.run.chooses_ports) {
    ports = request.run.required_ports;
    ports.insert(ports.end(), request.run.usual_ports.begin(), request.run.usual_ports.end());
  }
  const std::string any = request.cluster.ipv6 ? "::" : "0.0.0.0";
  const ProbeServer server(request.members->address.empty() ? any : request.members->address, ports);
  facts.probe = {request.members->address, server.port()};
  EventLoop loop;
  NodeSession session(loop, session_options(request),
                      [](std::string_view line) { log_line("fleetrun", line); });
  std::optional<DoctorsWord> word;
  session.answer_with(
      [&](const std::string& question, const std::string&) { return answer_probe(question, facts, word); });
  bool joined = false;
  const LineReader news(loop, request.starter_news, [&](std::string_view line) {
    const StartProblem problem = parse_start_problem(line);
    if (request.output == DoctorOutput::findings)
      session.stop_waiting(problem.line, problem.exit_code);
    else if (!joined)  // the node is missing among those that are examined
      say(problem.line);
  });
  if (const auto failure = session.join(front.read_end.get())) {
    if (has_met_a_run(request, *failure)) {
      say("the run goes on already, so only this host is examined");
      return examine_alone(request, std::move(facts));
    }
    log_line("fleetrun", failure->line);
    return failure->exit_code;
  }
  joined = true;
  return session.is_first() ? lead(request, loop, session) : follow(request, loop, session, word);
}

}  // namespace

int run_doctor(const DoctorRequest& request) {
  say("looking at this host");
  NodeFacts facts = read_own_facts(request.run, request.cluster, request.host);
  if (!request.members) return examine_alone(request, std::move(facts));
  say(fmt::format("waiting up to {:g} s for {} nodes", in_seconds(request.join_timeout),
                  request.members->nodes));
  return examine_together(request, std::move(facts));
}

}  // namespace fleetrun::launch
