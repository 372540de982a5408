// What this machine has. Facts, no decisions.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "launch/host/core_binding.h"

namespace fleetrun::launch {

struct HostFacts {
  std::vector<std::string> addresses;             // loopback included, link-local not
  std::map<std::string, std::string> interfaces;  // of each address: "eth0"
  std::string name;                               // as gethostname(2) has it
  int gpus = 0;                                   // device files /dev/nvidia0, /dev/nvidia1, ...
  int cores = 1;                                  // in our affinity mask
  std::vector<CpuPlace> cpus;                     // of that mask; only probed when ranks are to be bound
  bool cuda_plugin = false;                       // libfleetrun_cuda.so lies beside our libraries
};

// That has the address; loopback has all of 127.0.0.0/8. "": none.
std::string interface_of(const HostFacts& host, const std::string& address);

// `root` stands before /dev, so that tests can have devices.
HostFacts probe_host(const std::string& root = "");

}  // namespace fleetrun::launch
