#include "launch/run/run_until_done.h"

#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/system/colours.h"
#include "launch/host/limits.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/log_names.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/node_session.h"
#include "launch/nodes/places.h"
#include "launch/report/report.h"
#include "launch/run/announcements.h"
#include "launch/run/fill_report.h"
#include "launch/run/join_nodes.h"
#include "launch/run/run_loop.h"
#include "launch/run/shared_run.h"
#include "launch/run/tell_first_node.h"
#include "launch/run/write_page.h"
#include "launch/serve/control_server.h"
#include "launch/serve/joining_control.h"
#include "launch/starters/start_problem.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {
namespace {

LogPlan plan_logs(const RunPlan& plan, const std::string& run_id) {
  return {.run_id = run_id,
          .pid = ::getppid(),  // the front process, as in `fleetrun ps`
          .ranks = plan.cluster.local_size(),
          .has_train_report = plan.embedded.has_value(),
          .may_start_again = may_start_again(plan.options),
          .keeps_previous = true,
          .keeps_places = is_elastic(plan.options)};
}

// Takes over the log folder, and moves or deletes the files of the last run. If this fails, it tells the other nodes,
// which wait for this one.
LogFolder make_log_folder(const RunPlan& plan, const std::string& run_id) {
  try {
    return LogFolder(plan.options.log_dir.value, plan_logs(plan, run_id));
  } catch (const Error& error) {
    if (plan.members) tell_first_node(*plan.members, plan.options, plan.environment, error);
    throw;
  }
}

// That the report cannot be written does not hide why the run could not go on.
void try_to_write(const RunPlan& plan, const LogFolder& logs, const ExitReport& report) {
  try {
    logs.release_reserve();
    write_report(logs, report);
    write_end_page(plan, logs, report);
  } catch (const Error& problem) {
    print_problem(problem);
  }
}

// What make() returns. When it throws, this node cannot go on, and tells the others why.
template <typename Make>
auto make_or_leave(NodeSession& nodes, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    nodes.leave(cannot_go_on(nodes, error));
    throw;
  }
}

// Numbers this node's ranks among those of all nodes.
ClusterSpec number_ranks(const RunPlan& plan, const NodeSession& nodes, const LogFolder& logs) {
  write_places(logs, nodes.placed());
  return with_others(plan.cluster, plan.options, nodes.placed());
}

// Nodes that do not fit together are an error in the report: no rank is the cause, and nobody stopped the run.
[[noreturn]] void end_while_joining(const NodeFailure& failure, const NodeSession& nodes,
                                    ExitReport& report) {
  if (cause_called(failure.cause)) report.whole = whole_run({.failure = failure, .node = {}}, nodes);
  throw Error(static_cast<ErrorKind>(failure.exit_code), failure.line);
}

// The run is over, and never needed this node.
int end_spare(const std::function<void(std::string_view line)>& say, const RunPlan& plan,
              const LogFolder& logs, ExitReport& report) {
  say("the run is over; it did not need this node");
  report.ended = Moment::now();
  try_to_write(plan, logs, report);
  return 0;
}

// All nodes have read it, unless some may come later.
void remove_order(const RunPlan& plan) {
  if (!plan.order_file.empty() && !is_elastic(plan.options)) ::unlink(plan.order_file.c_str());
}

int run_with_others(const RunPlan& plan, int front_fd, LogFolder& logs,
                    const std::vector<std::string>& successors, ExitReport& report) {
  EventLoop loop;
  const auto say = [](std::string_view line) { log_line("fleetrun", line); };
  NodeSessionOptions options = node_options(plan, logs, report);
  options.possible_successors = successors;
  NodeSession nodes(loop, std::move(options), say);
  const JoiningControl joining = {nodes, report};
  ControlServer control(loop, logs,
                        [&joining](const std::string& request, const std::string&,
                                   const ControlServer::Reply& reply) { reply(joining.answer(request)); });
  bool joined = false;
  const LineReader news(loop, plan.starter_news, [&](std::string_view line) {
    const StartProblem problem = parse_start_problem(line);
    if (!joined) return nodes.stop_waiting(problem.line, problem.exit_code);
    if (!nodes.is_over()) say(problem.line);
  });
  if (const auto failure = nodes.join(front_fd)) end_while_joining(*failure, nodes, report);
  joined = true;
  remove_order(plan);
  if (nodes.was_spare()) return end_spare(say, plan, logs, report);
  report.run_id = nodes.placed().run_id;
  logs.join_run(report.run_id);
  RunPlan placed_plan = plan;
  placed_plan.cluster = make_or_leave(nodes, [&] { return number_ranks(plan, nodes, logs); });
  RunLoop run = make_or_leave(nodes, [&] {
    return RunLoop(placed_plan, {loop, control, front_fd, &nodes, &placed_plan.cluster}, logs, report);
  });
  run.run();
  return report.verdict.exit_code;
}

int run_here(const RunPlan& plan, int front_fd, LogFolder& logs, ExitReport& report) {
  EventLoop loop;
  ControlServer control(loop, logs, nullptr);
  RunLoop(plan, {loop, control, front_fd}, logs, report).run();
  return report.verdict.exit_code;
}

DescriptorUsers descriptor_users(const RunPlan& plan) {
  const int ranks = plan.cluster.local_size();
  if (!plan.members) return {.ranks = ranks};
  const int nodes = plan.members->nodes, ranks_elsewhere = plan.embedded ? (nodes - 1) * ranks : 0;
  if (plan.members->may_be_first) return {.ranks = ranks, .nodes = nodes, .ranks_elsewhere = ranks_elsewhere};
  if (!is_elastic(plan.options)) return {.ranks = ranks};
  return {.ranks = ranks, .nodes_later = nodes, .ranks_elsewhere = ranks_elsewhere};
}

}  // namespace

int run_until_done(const RunPlan& plan, int front_fd) {
  raise_descriptor_limit(descriptor_users(plan));
  ExitReport report = begin_report(plan);
  const std::vector<std::string> successors = possible_successors(plan.options);
  LogFolder logs = make_log_folder(plan, report.run_id);
  try {
    return plan.members ? run_with_others(plan, front_fd, logs, successors, report)
                        : run_here(plan, front_fd, logs, report);
  } catch (const Error& error) {
    if (report.has_ended()) throw;  // only the last words of the run failed
    if (const std::string line = describe_previous(plan.cluster, logs); !report.has_begun && !line.empty())
      log_line("fleetrun", line);
    end_report(error, report);
    if (report.whole) report.verdict.exit_code = report.whole->exit_code;
    if (!report.attempts.empty()) fill_going_on(logs, plan.stop, report);
    try_to_write(plan, logs, report);
    if (report.attempts.empty()) throw;
    print_problem(error.with("starting again after: " + report.attempts.back().message));
    fmt::print(stderr, "{}", report.going_on);
  }
  return report.verdict.exit_code;
}

void report_lost_run(const RunPlan& plan, const Moment& started, const ExitStatus& middle) {
  ExitReport report = begin_report(plan);
  report.started = started;
  end_report(Error(ErrorKind::internal, "the supervising process " + middle.describe()), report);
  report.verdict.exit_code = middle.exit_code();
  try {
    write_lost_report(plan.options.log_dir.value, [&](const std::string& run_id) -> NamedTexts {
      report.run_id = run_id;
      return {{kReportName, report_json(report)}, {kPageName, end_page(plan, report)}};
    });
  } catch (const Error& error) {
    print_problem(error);
  }
}

}  // namespace fleetrun::launch
