// The function of each target that writes its file; target.cpp lists them.
#pragma once
#include <string>

#include "launch/render/batch_run.h"

namespace fleetrun::launch {

std::string write_slurm(const BatchRun& run);
std::string write_pbs(const BatchRun& run);
std::string write_lsf(const BatchRun& run);
std::string write_kubernetes(const BatchRun& run);
std::string write_kubeflow(const BatchRun& run);
std::string write_jobset(const BatchRun& run);
std::string write_volcano(const BatchRun& run);
std::string write_systemd(const BatchRun& run);
std::string write_ssh(const BatchRun& run);

}  // namespace fleetrun::launch
