// Pods with a number: Indexed Jobs and JobSets (JOB_COMPLETION_INDEX, kubernetes.io "Job", "Completion mode"), and StatefulSets
// ("Stable Network ID"). Neither tells how many pods there are.
#include <cctype>
#include <sstream>

#include <fmt/format.h>

#include "launch/cli/flags/flag_values.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {
namespace {

struct PodName {
  std::string start;  // "train-workers-0-"
  int number = 0;
};

std::optional<PodName> parse_pod_name(const std::string& host) {
  const std::size_t dash = host.rfind('-');
  PodName name;
  if (dash == std::string::npos || dash == 0 || !parse_whole(host.substr(dash + 1), name.number) ||
      name.number < 0)
    return std::nullopt;
  name.start = host.substr(0, dash + 1);
  return name;
}

// ".train.default.svc.cluster.local": what /etc/hosts has after the pod's own name. "": the pod has no subdomain.
std::string domain_of(const SchedulerFacts& facts, const std::string& host) {
  std::string text;
  try {
    text = facts.read_file("/etc/hosts");
  } catch (const Error&) {
    return "";  // then the name of the first pod has no domain, and the resolver says whether it knows it
  }
  std::istringstream words(text);
  for (std::string word; words >> word;)
    if (word.starts_with(host + ".")) return word.substr(host.size());
  return "";
}

std::optional<Allocation> from_pod_name(const SchedulerFacts& facts, const std::string& found_in) {
  const std::string host = facts.environment.get_or("HOSTNAME", "");
  const auto name = parse_pod_name(host);
  if (!name) return std::nullopt;
  check_host("HOSTNAME", host);
  return Allocation{.scheduler = Scheduler::kubernetes,
                    .found_in = found_in,
                    .node_count = 0,
                    .this_node = name->number,
                    .this_node_source = found_in,
                    .started_on_every_node = true,
                    .master = name->start + "0" + domain_of(facts, host),
                    .master_source = "HOSTNAME"};
}

}  // namespace

std::optional<Allocation> from_indexed_job(const SchedulerFacts& facts) {
  const auto index = number_in(facts.environment, "JOB_COMPLETION_INDEX");
  if (!index) return std::nullopt;
  const std::string host = facts.environment.get_or("HOSTNAME", "");
  std::optional<Allocation> allocation = from_pod_name(facts, "JOB_COMPLETION_INDEX");
  if (allocation && *allocation->this_node != *index)
    throw bad_allocation(fmt::format("JOB_COMPLETION_INDEX is {}, but HOSTNAME is {}, which ends with {}",
                                     *index, host, *allocation->this_node));
  if (!allocation)
    allocation = Allocation{.scheduler = Scheduler::kubernetes,
                            .found_in = "JOB_COMPLETION_INDEX",
                            .node_count = 0,
                            .this_node = index,
                            .this_node_source = "JOB_COMPLETION_INDEX",
                            .started_on_every_node = true};
  return allocation;
}

std::optional<Allocation> from_stateful_set(const SchedulerFacts& facts) {
  if (facts.environment.get_or("KUBERNETES_SERVICE_HOST", "").empty()) return std::nullopt;
  return from_pod_name(facts, "HOSTNAME");
}

}  // namespace fleetrun::launch
