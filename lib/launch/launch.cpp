#include "launch/launch.h"

#include "launch/cluster.h"
#include "launch/guardian.h"
#include "launch/host_facts.h"
#include "launch/program.h"
#include "launch/run_node.h"

namespace fleetrun::launch {

int launch(const LaunchOptions& options, const Environment& environment) {
  const Program program = find_program(options.program, options.arguments, environment);
  const HostFacts host = probe_host();
  const ClusterSpec cluster = resolve_cluster(options, host, {}, environment);
  return run_guarded([&](int front_fd) {
    return run_node({options, environment, program, cluster}, front_fd);
  });
}

}  // namespace fleetrun::launch
