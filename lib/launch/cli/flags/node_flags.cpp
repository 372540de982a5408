#include "launch/cli/flags/node_flags.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/cli/flags/flag_rows.h"

namespace fleetrun::launch {
namespace {

Endpoint as_endpoint(const std::string& source, const std::string& text) {
  return with_context(fmt::format("reading {}", source), [&] { return parse_endpoint(text); });
}

Names<std::string> scheduler_names() {
  Names<std::string> names;
  for (const char* name : {"auto", "none", "paddle", "kubeflow", "slurm", "lsf", "pbs", "openmpi", "hydra",
                           "pmix", "volcano", "pytorchjob", "kubernetes"})
    names.emplace_back(name, name);
  return names;
}

Names<StartBy> starter_names() {
  Names<StartBy> names;
  for (const StartBy starter : {StartBy::automatic, StartBy::none, StartBy::srun, StartBy::pbsdsh,
                                StartBy::blaunch, StartBy::mpirun, StartBy::ssh})
    names.emplace_back(name_of(starter), starter);
  return names;
}

std::vector<Flag> place_flags(LaunchOptions& options) {
  return {
      value(
          options.ips, parse_hosts,
          {.names = {"--ips"},
           .argument = "ADDRESSES",
           .help =
               "Addresses of the nodes, such as 10.0.0.1,10.0.0.2. Start the same command on each; the first node coordinates "
               "(docs/many-hosts.md)",
           .variable = "PADDLE_IPS"}),
      value(options.nnodes, parse_nodes,
            {.names = {"--nnodes"},
             .argument = "N",
             .help =
                 "Number of nodes, which meet at --master or --rdzv_endpoint. MIN:MAX makes the run elastic: "
                 "it starts with MIN to MAX nodes, and goes on without nodes that are lost",
             .variable = "PADDLE_NNODES",
             .of_node = true}),
      value(
          options.node_rank, parse_node_rank,
          {.names = {"--node_rank", "--rank"},
           .argument = "N",
           .help =
               "Rank of this node. By default its place in --ips; with --master, nodes get ranks in the order in which they arrive",
           .variable = "PADDLE_RANK",
           .of_node = true}),
      value(
          options.master, as_endpoint,
          {.names = {"--master"},
           .argument = "HOST:PORT",
           .help =
               "Address where the nodes meet: a host name or IP address of the first node, and a free port there. Give the same value, "
               "and --nnodes, on every node (docs/many-hosts.md). With one node, the workers get it as MASTER_ADDR and MASTER_PORT. For several nodes, PADDLE_MASTER says the same",
           .of_node = true}),
      value(options.join_timeout, parse_seconds,
            {.names = {"--join_timeout"},
             .argument = "SECONDS",
             .help = "Seconds to wait until all nodes have joined, or MIN of --nnodes=MIN:MAX",
             .of_node = true}),
  };
}

std::vector<Flag> elastic_flags(LaunchOptions& options) {
  return {
      value(
          options.elastic_timeout, parse_seconds,
          {.names = {"--elastic_timeout"},
           .argument = "SECONDS",
           .help =
               "With --nnodes=MIN:MAX, seconds to wait for more nodes once MIN have joined, and for a node to "
               "come back when fewer than MIN are left",
           .variable = "PADDLE_ELASTIC_TIMEOUT"}),
      value(
          options.rejoin_at, parse_hosts_without_ports,
          {.names = {"--rejoin_at"},
           .argument = "HOSTS",
           .help =
               "With --nnodes=MIN:MAX and --master, hosts that may have taken over the run when its first node was "
               "lost. This node asks them, too, before it starts a new run",
           .of_node = true}),
      value(
          options.spares, parse_restarts,
          {.names = {"--spares"},
           .argument = "N",
           .help =
               "Number of the nodes that stand by without ranks. When a node is lost, a spare node takes its "
               "place"}),
  };
}

std::vector<Flag> joining_flags(LaunchOptions& options) {
  return {
      on_or_off(options.preflight,
                {.names = {"--preflight"},
                 .help = "Examine the nodes as fleetrun doctor does, and start only if nothing is wrong"}),
      value(
          options.key_file, as_text,
          {.names = {"--key_file"},
           .argument = "FILE",
           .help =
               "File with the secret that all nodes share, 32 bytes or more. By default ~/.fleetrun/key, which fleetrun creates",
           .variable = "FLEETRUN_KEY_FILE",
           .completes = Completes::files,
           .of_node = true}),
      choice(
          options.scheduler, scheduler_names(),
          {.names = {"--scheduler"},
           .argument = "NAME",
           .help =
               "System that tells which nodes take part. auto recognises it; none ignores the variables of all of them"}),
      choice(
          options.start_by, starter_names(),
          {.names = {"--start_by"},
           .argument = "PROGRAM",
           .help =
               "Program that starts fleetrun on the other nodes. auto takes that of the batch system: srun, pbsdsh or blaunch. ssh also starts those of --hosts and --hostfile; mpirun is that of Open MPI; with none you start them",
           .of_node = true}),
      value(
          options.topology, as_text,
          {.names = {"--topology"},
           .argument = "FILE",
           .help =
               "File with the switches of the cluster, as in Slurm's topology.conf. Nodes of one switch then get ranks "
               "that follow each other",
           .completes = Completes::files}),
      value(
          options.exclude_hosts, as_text,
          {.names = {"--exclude_hosts"},
           .argument = "FILE",
           .help =
               "File with hosts that take no part in the run, although a scheduler, --hosts or --hostfile names them",
           .completes = Completes::files}),
      on_or_off(options.insecure,
                {.names = {"--insecure"},
                 .help = "Let nodes join without a shared secret. Everybody who reaches the first node can "
                         "then start programs on the others"}),
  };
}

}  // namespace

std::vector<Flag> node_flags(LaunchOptions& options) {
  std::vector<Flag> flags = place_flags(options);
  for (std::vector<Flag> more : {elastic_flags(options), joining_flags(options)})
    std::move(more.begin(), more.end(), std::back_inserter(flags));
  return flags;
}

}  // namespace fleetrun::launch
