// What is probably wrong with the NCCL variables of the workers: told before NCCL hangs or slows down because of it.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace fleetrun::launch {

struct NetworkFacts {
  std::vector<std::string> interfaces;  // "lo", "eth0", ...
  std::vector<std::string> loopbacks;   // those of them
  int infiniband_ports = 0;             // of InfiniBand and RoCE devices
  int infiniband_active = 0;            // those of them with a link
};

NetworkFacts probe_network(const std::string& root = "");  // `root` stands before /sys in tests

// One text for each thing to look at. `variables` are all that the workers get.
std::vector<std::string> lint_nccl(const std::map<std::string, std::string>& variables,
                                   const NetworkFacts& network, int nodes);

}  // namespace fleetrun::launch
