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

std::string Allocation::describe() const {
  const std::string job = job_id.empty() ? "" : fmt::format(" job {}", job_id);
  const std::string place = this_node ? fmt::format("node {} of {}", *this_node, node_count)
                                      : fmt::format("{}", plural(node_count, "node"));
  return fmt::format("{}{}, {}, from {}", name_of(scheduler), job, place, found_in);
}

}  // namespace fleetrun::launch
