// One function per system: what its variables and files say, or nothing when it did not start this process. Each throws Error(usage)
// that names the variable and quotes it when the variables make no sense.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "base/system/environment.h"
#include "launch/schedulers/allocation.h"

namespace fleetrun::launch {

struct SchedulerFacts {
  Environment environment;
  std::function<std::string(const std::string& path)> read_file;  // throws Error when it cannot
};

std::optional<Allocation> from_paddle_cloud(const SchedulerFacts& facts);
std::optional<Allocation> from_kubeflow_trainer(const SchedulerFacts& facts);
std::optional<Allocation> from_slurm(const SchedulerFacts& facts);
std::optional<Allocation> from_lsf(const SchedulerFacts& facts);
std::optional<Allocation> from_pbs(const SchedulerFacts& facts);
std::optional<Allocation> from_volcano(const SchedulerFacts& facts);
std::optional<Allocation> from_pytorch_job(const SchedulerFacts& facts);
std::optional<Allocation> from_indexed_job(const SchedulerFacts& facts);  // also a JobSet
// Many host names end with a number, so fleetrun uses this only if the user asks for several nodes.
std::optional<Allocation> from_stateful_set(const SchedulerFacts& facts);

// An MPI launcher tells the tasks, but not the hosts: `nodes` is empty.
std::optional<Allocation> from_mpi(const SchedulerFacts& facts);

}  // namespace fleetrun::launch
