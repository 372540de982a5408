#include "launch/schedulers/allocation.h"

#include <array>

#include <fmt/format.h>

#include "base/text/plural.h"

namespace fleetrun::launch {
namespace {

struct Names {
  const char* name;
  const char* word;
};

// In the order of the enumeration.
constexpr std::array<Names, 12> kNames = {{{"a list of hosts", "hosts"},
                                           {"PaddlePaddle's cloud", "paddle"},
                                           {"Kubeflow Trainer", "kubeflow"},
                                           {"Slurm", "slurm"},
                                           {"LSF", "lsf"},
                                           {"PBS", "pbs"},
                                           {"Open MPI", "openmpi"},
                                           {"Hydra", "hydra"},
                                           {"PMIx", "pmix"},
                                           {"Volcano", "volcano"},
                                           {"PyTorchJob", "pytorchjob"},
                                           {"Kubernetes", "kubernetes"}}};

const Names& names_of(Scheduler scheduler) { return kNames.at(static_cast<std::size_t>(scheduler)); }

}  // namespace

std::string name_of(Scheduler scheduler) { return names_of(scheduler).name; }
std::string word_of(Scheduler scheduler) { return names_of(scheduler).word; }

bool Allocation::is_one_rank() const {
  return task && (task->local_size > 1 || (node_count > 0 && task->size > node_count));
}

std::string Allocation::describe() const {
  const std::string job = job_id.empty() ? "" : fmt::format(" job {}", job_id);
  std::string place = node_count == 0 ? "an unknown number of nodes" : plural(node_count, "node");
  if (this_node) place = fmt::format("node {} of {}", *this_node, place);
  return fmt::format("{}{}, {}, from {}", name_of(scheduler), job, place, found_in);
}

}  // namespace fleetrun::launch
