#include "launch/schedulers/settle_nodes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "base/text/split_list.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/schedulers/arrange_nodes.h"
#include "launch/schedulers/host_file.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/recognise.h"

namespace fleetrun::launch {
namespace {

template <typename T>
bool is_given(const Setting<T>& setting) {
  return setting.origin != Origin::fallback;
}

template <typename T, typename Value>
void fill(Setting<T>& setting, Value value, const std::string& source) {
  if (!is_given(setting)) setting = {std::move(value), Origin::environment, source};
}

void read_host_file(LaunchOptions& options, const SchedulerFacts& facts) {
  if (!is_given(options.hostfile)) return;
  const std::string& path = options.hostfile.value;
  if (options.hosts.value)
    throw bad_allocation(
        fmt::format("{} and {} both list the hosts", options.hosts.source, options.hostfile.source));
  HostList list;
  for (const NodeSlots& node : parse_host_file(
           path, with_context("reading the file of --hostfile", [&] { return facts.read_file(path); }))) {
    list.hosts.push_back({node.host, node.slots});
    list.text += (list.text.empty() ? "" : ",") + bracketed(node.host) +
                 (node.slots ? fmt::format(":{}", *node.slots) : "");
  }
  options.hosts = {list, options.hostfile.origin, options.hostfile.source};
}

// Several hosts in --hosts or --hostfile are what they would be in --ips. One is this host with its slots.
std::optional<Allocation> from_host_list(LaunchOptions& options) {
  if (!options.hosts.value || options.hosts.value->hosts.size() < 2) return std::nullopt;
  Allocation allocation = {
      .scheduler = Scheduler::host_list, .found_in = options.hosts.source, .started_on_every_node = true};
  std::string list;
  for (const HostSlots& host : options.hosts.value->hosts) {
    allocation.nodes.push_back({host.host, host.slots});
    list += (list.empty() ? "" : ",") + host.host;
  }
  allocation.node_count = static_cast<int>(allocation.nodes.size());
  if (is_given(options.ips) && split_list(options.ips.value).size() != allocation.nodes.size())
    throw bad_allocation(fmt::format("{} is {}, but {} lists {}", options.ips.source, options.ips.value,
                                     options.hosts.source, list_hosts(allocation.nodes)));
  if (!is_given(options.ips)) options.ips = {list, options.hosts.origin, options.hosts.source};
  const StartBy starter = options.start_by.value;
  if (starter == StartBy::automatic || starter == StartBy::none || is_given(options.node_rank))
    return allocation;
  allocation.started_on_every_node = false;
  allocation.start_by = starter;
  fill(options.node_rank, std::optional(0), kPlaceOfStarter);
  return allocation;
}

bool names_nodes(const LaunchOptions& options) {
  return is_given(options.ips) || is_given(options.node_rank) || options.standalone.value ||
         (options.nnodes.value == NodeRange());
}

bool names_meeting(const LaunchOptions& options) {
  return is_given(options.master) || is_given(options.rdzv_endpoint) || is_given(options.master_addr);
}

// --nnodes is the only way to know how many pods of a Job or StatefulSet there are.
void check_number(const LaunchOptions& options, Allocation& allocation) {
  if (!options.nnodes.value) return;
  if (allocation.node_count > 0 && options.nnodes.value->most != allocation.node_count)
    throw bad_allocation(
        fmt::format("{} is {}, but {} gives {}", options.nnodes.source, show_value(*options.nnodes.value),
                    allocation.found_in, plural(allocation.node_count, "node")),
        "--scheduler=none ignores what the scheduler says");
  allocation.node_count = options.nnodes.value->most;
  if (allocation.this_node && *allocation.this_node >= allocation.node_count)
    throw bad_allocation(fmt::format("{} is {}, but {} is {}", allocation.this_node_source,
                                     *allocation.this_node, options.nnodes.source, allocation.node_count));
}

void fill_meeting(LaunchOptions& options, const Allocation& allocation) {
  if (names_meeting(options)) return;
  if (!allocation.master.empty()) fill(options.master_addr, allocation.master, allocation.master_source);
  if (allocation.master_port)
    fill(options.master_port, *allocation.master_port, allocation.master_source);
  else if (const auto port = port_of_job(allocation.job_id))
    fill(options.master_port, *port, allocation.job_id_source);
}

// In the batch script of a job of Slurm, and in the shell that salloc opens on its first node. Elsewhere srun would start a fleetrun
// beside this one.
bool is_on_first_node(const Allocation& allocation, const Environment& environment) {
  return allocation.scheduler != Scheduler::slurm ||
         environment.get_or("SLURMD_NODENAME", "") == allocation.nodes.front().host;
}

// On each node. Variables of the system may have come with the environment of another node.
void expect_user_to_start(Allocation& allocation) {
  if (allocation.started_on_every_node || allocation.task || allocation.nodes.size() < 2) return;
  allocation.started_on_every_node = true;
  allocation.this_node.reset();
}

// What starts the other nodes, where nobody has.
StartBy starter_of(const LaunchOptions& options, const Allocation& allocation,
                   const Environment& environment) {
  if (allocation.started_on_every_node || allocation.nodes.size() < 2) return StartBy::none;
  if (options.start_by.value != StartBy::automatic) return options.start_by.value;
  if (!is_on_first_node(allocation, environment)) return StartBy::none;
  switch (allocation.scheduler) {
    case Scheduler::slurm:
      return StartBy::srun;
    case Scheduler::pbs:
      return StartBy::pbsdsh;
    case Scheduler::lsf:
      return StartBy::blaunch;
    default:
      return StartBy::none;
  }
}

// What a system says about the ranks of this node, which may be the only one.
void fill_ranks(LaunchOptions& options, const Allocation& allocation) {
  if (allocation.workers_per_node)
    fill(options.nproc_per_node, *allocation.workers_per_node, allocation.workers_source);
  if (allocation.start_port) fill(options.start_port, *allocation.start_port, "PADDLE_PORT");
}

void apply(LaunchOptions& options, const Allocation& allocation) {
  // from_host_list() has filled --ips on the first node.
  const bool is_listed = allocation.scheduler == Scheduler::host_list;
  if (allocation.nodes.empty() || (names_meeting(options) && !is_listed)) {
    const int most = allocation.node_count;
    fill(options.nnodes, NodeRange{allocation.least_nodes.value_or(most), most}, allocation.found_in);
  } else {
    std::string list;
    for (const NodeSlots& node : allocation.nodes) list += (list.empty() ? "" : ",") + node.host;
    fill(options.ips, list, allocation.found_in);
  }
  if (allocation.this_node) fill(options.node_rank, allocation.this_node, allocation.this_node_source);
  fill_ranks(options, allocation);
  fill_meeting(options, allocation);
  if (allocation.this_node) use_own_log_folder(options, *allocation.this_node, allocation.this_node_source);
}

std::optional<Allocation> find_allocation(const LaunchOptions& options, const SchedulerFacts& facts) {
  const std::string& word = options.scheduler.value;
  std::optional<Allocation> found = recognise(facts, word);
  const bool may_be_set = word == "auto" || word == word_of(Scheduler::kubernetes);
  if (!found && may_be_set && options.nnodes.value.value_or(NodeRange()).most > 1 && !names_meeting(options))
    found = from_stateful_set(facts);
  if (!found && word != "auto" && word != "none")
    throw bad_allocation(
        fmt::format("{} is {}, but no variable of {} is set", options.scheduler.source, word, word));
  return found;
}

// No scheduler and no list of hosts.
void arrange_unrecognised(LaunchOptions& options, const SchedulerFacts& facts) {
  if (split_list(options.ips.value).size() > 1)
    arrange_addresses(options, facts);
  else if (options.left_out.empty())
    arrange_unlisted(options);
}

void check_starter(const LaunchOptions& options, const Allocation& allocation) {
  if (allocation.start_by != StartBy::pbsdsh || options.left_out.empty()) return;
  throw bad_allocation(
      fmt::format("pbsdsh starts fleetrun on every node of the job, so {} cannot leave out {}",
                  options.exclude_hosts.source, options.left_out.front()),
      "--start_by=ssh or --start_by=mpirun starts it on some of them");
}

// The line that starts fleetrun once on each node.
std::string line_of(Scheduler scheduler, int nodes) {
  switch (scheduler) {
    case Scheduler::slurm:
      return "srun --ntasks-per-node=1 fleetrun ...";
    case Scheduler::pbs:
    case Scheduler::lsf:
      return fmt::format("mpirun -np {} --map-by ppr:1:node fleetrun ...", nodes);
    default:
      return fmt::format(
          "mpirun --map-by ppr:1:node fleetrun ... (Open MPI), mpiexec -ppn 1 fleetrun ... (MPICH)");
  }
}

void check_is_launcher(const Allocation& allocation) {
  if (!allocation.is_one_rank()) return;
  const Task& task = *allocation.task;
  throw bad_allocation(
      fmt::format(
          "{} started this fleetrun as task {} of {}, and several of them on one node; fleetrun needs one "
          "task on each node and starts the ranks itself ({})",
          name_of(allocation.scheduler), task.rank, task.size, task.found_in),
      line_of(allocation.scheduler, std::max(1, allocation.node_count)));
}

void check_node_count(const Allocation& allocation) {
  if (allocation.node_count > 0) return;
  if (allocation.scheduler == Scheduler::pbs)
    throw bad_allocation(
        fmt::format("PBS started this fleetrun as a task of its job ({}), but PBS_NODEFILE is not set, so "
                    "nothing tells the other nodes",
                    allocation.found_in),
        "start fleetrun on the first node, which starts the others; or give --master, --nnodes and "
        "--node_rank; --nnodes=1 runs on this host alone");
  throw bad_allocation(
      fmt::format("{} is {}, but nothing says how many nodes the run has", allocation.found_in,
                  allocation.this_node.value_or(0)),
      "PADDLE_NNODES in the manifest or --nnodes tells; --nnodes=1 makes each of them a run of its own");
}

void check_is_everywhere(const Allocation& allocation) {
  if (!allocation.started_on_every_node && allocation.start_by == StartBy::none)
    throw bad_allocation(
        fmt::format("{} lists {} ({}), but nothing started this fleetrun on all of them", allocation.found_in,
                    plural(allocation.node_count, "node"), list_hosts(allocation.nodes)),
        fmt::format(
            "type {}; with --start_by=none you start it on each node; --nnodes=1 runs on this host alone",
            line_of(allocation.scheduler, allocation.node_count)));
}

}  // namespace

std::optional<Allocation> settle_nodes(LaunchOptions& options, const SchedulerFacts& facts) {
  read_host_file(options, facts);
  arrange_host_list(options, facts);
  if (auto listed = from_host_list(options)) return listed;
  std::optional<Allocation> found;
  if (!names_nodes(options)) found = find_allocation(options, facts);
  if (!found) {
    arrange_unrecognised(options, facts);
    return std::nullopt;
  }
  if (options.start_by.value == StartBy::none) expect_user_to_start(*found);
  arrange_nodes(options, facts, *found);
  check_number(options, *found);
  found->start_by = starter_of(options, *found, facts.environment);
  check_starter(options, *found);
  const bool starts_others = found->start_by != StartBy::none;
  if (starts_others) {
    found->this_node = 0;
    found->this_node_source = kPlaceOfStarter;
  }
  options.scheduler = {word_of(found->scheduler), Origin::environment, found->describe()};
  if (found->node_count == 1)
    fill_ranks(options, *found);
  else if (found->node_count > 1 && (found->started_on_every_node || starts_others) && !found->is_one_rank())
    apply(options, *found);
  return found;
}

void take_nodes(LaunchOptions& options, const Allocation& allocation) {
  if (allocation.scheduler != Scheduler::host_list)
    options.scheduler = {word_of(allocation.scheduler), Origin::environment, allocation.describe()};
  apply(options, allocation);
}

void check_can_start(const LaunchOptions& options, const std::optional<Allocation>& allocation) {
  if (!allocation) return;
  check_is_launcher(*allocation);
  check_node_count(*allocation);
  if (allocation->node_count == 1) return;
  check_is_everywhere(*allocation);
  if (allocation->nodes.empty() && allocation->master.empty() && !names_meeting(options))
    throw bad_allocation(
        fmt::format("{} started {} tasks, but does not say on which hosts", name_of(allocation->scheduler),
                    allocation->node_count),
        "--master=HOST:PORT names the host of task 0; inside a job of Slurm, PBS or LSF it is known");
}

void use_own_log_folder(LaunchOptions& options, int node_rank, const std::string& source) {
  if (node_rank > 0 && !options.log_dir.value.empty())
    fill(options.log_dir, fmt::format("{}.node{}", options.log_dir.value, node_rank), source);
}

}  // namespace fleetrun::launch
