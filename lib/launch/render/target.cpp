#include "launch/render/target.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/suggest.h"
#include "launch/cli/flags/flag_rows.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {

const std::vector<Target>& targets() {
  static const std::vector<Target> table = {
      {.name = "slurm",
       .ending = ".sbatch",
       .summary = "Slurm batch file",
       .placer = "Slurm",
       .limits_time = true,
       .takes_environment = true,
       .logs_in_one_folder = true,
       .takes_queue = true,
       .write = write_slurm},
      {.name = "pbs",
       .ending = ".pbs",
       .summary = "batch file for PBS Professional and OpenPBS",
       .placer = "PBS",
       .takes_environment = true,
       .logs_in_one_folder = true,
       .takes_queue = true,
       .write = write_pbs},
      {.name = "lsf",
       .ending = ".lsf",
       .summary = "LSF batch file",
       .placer = "LSF",
       .takes_environment = true,
       .logs_in_one_folder = true,
       .takes_queue = true,
       .write = write_lsf},
      {.name = "k8s",
       .ending = ".k8s.yaml",
       .summary = "Kubernetes Indexed Job",
       .placer = "Kubernetes",
       .limits_time = true,
       .brings_key = true,
       .takes_image = true,
       .write = write_kubernetes},
      {.name = "kubeflow",
       .ending = ".kubeflow.yaml",
       .summary = "Kubeflow PyTorchJob",
       .placer = "Kubernetes",
       .limits_time = true,
       .brings_key = true,
       .takes_image = true,
       .write = write_kubeflow},
      {.name = "jobset",
       .ending = ".jobset.yaml",
       .summary = "JobSet of Kubernetes",
       .placer = "Kubernetes",
       .limits_time = true,
       .brings_key = true,
       .takes_image = true,
       .write = write_jobset},
      {.name = "volcano",
       .ending = ".volcano.yaml",
       .summary = "Volcano Job",
       .placer = "Volcano",
       .brings_key = true,
       .takes_queue = true,
       .takes_image = true,
       .write = write_volcano},
      {.name = "systemd",
       .ending = ".service",
       .summary = "systemd unit for one host or for each of several",
       .logs_in_one_folder = true,
       .write = write_systemd},
      {.name = "ssh",
       .ending = ".sh",
       .summary = "shell script that starts the run on every host of --ips",
       .logs_in_one_folder = true,
       .write = write_ssh},
  };
  return table;
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Target& target : targets()) names.emplace_back(target.name);
  return names;
}

const Target& find_target(const std::string& name) {
  for (const Target& target : targets())
    if (target.name == name) return target;
  const std::vector<std::string> names = target_names();
  const auto meant = closest(name, names);
  throw Error(ErrorKind::usage,
              fmt::format("there is no target \"{}\", wanted {}{}", name, listed(names),
                          meant ? fmt::format("; did you mean {}?", *meant) : ""),
              "fleetrun render --help");
}

}  // namespace fleetrun::launch
