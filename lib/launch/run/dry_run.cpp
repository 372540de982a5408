#include "launch/run/dry_run.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/json/json_value.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/host/core_binding.h"
#include "launch/loop/event_loop.h"
#include "launch/plan/port_guard.h"
#include "launch/run/prepare_attempt.h"
#include "launch/run/runtime_support.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kDryRunId = "dry-run";

struct Difference {
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> unset;
};

Difference difference(const Environment& worker, const Environment& own) {
  Difference difference;
  for (const auto& [name, value] : worker.variables())
    if (own.get(name) != value) difference.set.emplace_back(name, value);
  for (const auto& [name, value] : own.variables())
    if (!worker.has(name)) difference.unset.push_back(name);
  return difference;
}

JsonValue as_list(const std::vector<std::string>& texts) {
  std::vector<JsonValue> values;
  values.reserve(texts.size());
  for (const std::string& text : texts) values.push_back(JsonValue(text));
  return JsonValue::list(std::move(values));
}

JsonValue as_json(const WorkerSpec& worker, const Environment& own) {
  const Difference changes = difference(worker.environment, own);
  JsonValue set = JsonValue::object();
  for (const auto& [name, value] : changes.set) set.add(name, value);
  JsonValue json = JsonValue::object();
  json.add("rank", worker.rank);
  json.add("executable", worker.executable);
  json.add("argv", as_list(worker.argv));
  json.add("set", std::move(set));
  json.add("unset", as_list(changes.unset));
  json.add("cpus", describe_cpus(worker.cpus));
  json.add("log", worker.log_path);
  if (!worker.error_log_path.empty()) json.add("error_log", worker.error_log_path);
  return json;
}

// With --master, a node knows only itself and the first one before they meet.
ClusterSpec with_stand_ins(ClusterSpec cluster, const Membership& members) {
  for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
    std::string& host = cluster.nodes[node].host;
    if (host.empty() && std::cmp_equal(node, members.node_rank.value_or(0))) host = members.host;
    if (host.empty() && node == 0) host = members.meeting.host;
    if (host.empty()) host = fmt::format("node{}", node);
  }
  return cluster;
}

}  // namespace

std::string workers_as_shell_lines(const std::vector<WorkerSpec>& workers, const Environment& own) {
  std::string text;
  for (const WorkerSpec& worker : workers) {
    const Difference changes = difference(worker.environment, own);
    std::vector<std::string> words = {"env"};
    for (const std::string& name : changes.unset) words.insert(words.end(), {"-u", name});
    for (const auto& [name, value] : changes.set) words.push_back(fmt::format("{}={}", name, value));
    if (!worker.cpus.empty()) words.insert(words.end(), {"taskset", "-c", describe_cpus(worker.cpus)});
    words.push_back(worker.executable);
    words.insert(words.end(), worker.argv.begin() + 1, worker.argv.end());
    // No redirection: a log that a shell wrote would be in the way of the next run.
    const std::string errors =
        worker.error_log_path.empty() ? "" : ", stderr " + quote_word(worker.error_log_path);
    text += fmt::format("{}  # rank {}, log {}{}\n", quote_words(words), worker.rank,
                        quote_word(worker.log_path), errors);
  }
  return text;
}

std::string workers_as_json(const std::vector<WorkerSpec>& workers, const Environment& own) {
  std::vector<JsonValue> values;
  values.reserve(workers.size());
  for (const WorkerSpec& worker : workers) values.push_back(as_json(worker, own));
  return to_json_lines(JsonValue::list(std::move(values)));
}

std::string dry_run(const RunPlan& plan) {
  EventLoop loop;
  const RuntimeSupport support(loop,
                               {.here = plan.embedded ? plan.cluster.local_size() : 0,
                                .world = plan.embedded ? plan.cluster.world_size() : 0,
                                .run_id = kDryRunId,
                                .address = plan.members ? plan.members->meeting.host : plan.cluster.host,
                                .key = {},
                                .serves_store = !plan.members || plan.cluster.node_rank == 0},
                               [](std::string_view) {});
  const Endpoints endpoints = plan.members ? expect_endpoints(with_stand_ins(plan.cluster, *plan.members))
                                           : hold_ports(plan.cluster).endpoints;
  const std::string logs =
      (std::filesystem::path(plan.folder) / plan.options.log_dir.value).lexically_normal();
  const std::vector<WorkerSpec> workers = plan_attempt(plan, {kDryRunId, 0}, endpoints, logs, support);
  if (plan.options.dry_run.value == "json") return workers_as_json(workers, plan.environment);
  const bool has_stand_ins = plan.members && plan.members->names.empty();
  return (has_stand_ins ? "# node1 stands for the address of node 1, which is known once the nodes have met\n"
                        : "") +
         workers_as_shell_lines(workers, plan.environment);
}

}  // namespace fleetrun::launch
