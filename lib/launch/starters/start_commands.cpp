// Sources of the options: "man srun"; "man pbsdsh" of OpenPBS and Torque; IBM's reference of blaunch (Spectrum LSF 10.1); "man mpirun"
// of Open MPI 4.1; "man ssh" and "man ssh_config".
#include "launch/starters/start_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "launch/cli/flags/shell_words.h"

namespace fleetrun::launch {
namespace {

using Words = std::vector<std::string>;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// When one node fails, fleetrun stops the others. So srun must neither kill them nor stop waiting. It binds no task to cores: the
// agent has those of all its ranks.
Words srun(const Words& hosts, const Words& agent) {
  return joined({"srun", fmt::format("--nodes={}", hosts.size()), fmt::format("--ntasks={}", hosts.size()),
                 "--ntasks-per-node=1", fmt::format("--nodelist={}", fmt::join(hosts, ",")), "--export=ALL",
                 "--kill-on-bad-exit=0", "--wait=0", "--input=all", "--cpu-bind=none", "--mpi=none"},
                agent);
}

// -u: once on each node of the job. The agent on this node ends at once.
Words pbsdsh(const Words& agent) { return joined({"pbsdsh", "-u", "--"}, agent); }

Words blaunch(const std::string& host, const Words& agent) {
  return joined({"blaunch", "-no-shell", host}, agent);
}

// The options of Open MPI. Like srun, it must not end the other nodes when one fails.
Words mpirun(const Words& hosts, const Words& agent) {
  return joined({"mpirun", "-np", std::to_string(hosts.size()), "--host",
                 fmt::format("{}", fmt::join(hosts, ",")), "--map-by", "ppr:1:node", "--bind-to", "none",
                 "--stdin", "all", "--mca", "orte_abort_on_non_zero_status", "0"},
                agent);
}

// A shell of the user reads the words again. After 30 s without an answer the connection is lost.
Words ssh(const std::string& host, const Words& agent) {
  return {"ssh",
          "-T",
          "-o",
          "BatchMode=yes",
          "-o",
          "ConnectTimeout=15",
          "-o",
          "ServerAliveInterval=10",
          "-o",
          "ServerAliveCountMax=3",
          "--",
          host,
          "exec " + quote_words(agent)};
}

}  // namespace

std::vector<StartCommand> start_commands(const Allocation& allocation, const Words& agent) {
  Words hosts;
  std::vector<int> nodes;
  for (std::size_t node = 1; node < allocation.nodes.size(); ++node) {
    hosts.push_back(allocation.nodes[node].host);
    nodes.push_back(static_cast<int>(node));
  }
  std::vector<StartCommand> commands;
  switch (allocation.start_by) {
    case StartBy::srun:
      return {{srun(hosts, agent), nodes}};
    case StartBy::pbsdsh:
      return {{pbsdsh(agent), nodes}};
    case StartBy::mpirun:
      return {{mpirun(hosts, agent), nodes}};
    case StartBy::blaunch:
      for (std::size_t i = 0; i < hosts.size(); ++i)
        commands.push_back({blaunch(hosts[i], agent), {nodes[i]}});
      return commands;
    case StartBy::ssh:
      for (std::size_t i = 0; i < hosts.size(); ++i) commands.push_back({ssh(hosts[i], agent), {nodes[i]}});
      return commands;
    case StartBy::automatic:
    case StartBy::none:
      break;
  }
  throw Error(ErrorKind::internal, "there is no command that starts the other nodes");
}

bool forwards_input(StartBy starter) { return starter != StartBy::pbsdsh; }

bool forwards_environment(StartBy starter) { return starter == StartBy::srun; }

}  // namespace fleetrun::launch
