// The systems for which fleetrun writes files, one row each: help, completion, errors and the tests read this table.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "launch/render/batch_run.h"

namespace fleetrun::launch {

struct Target {
  std::string_view name;            // "slurm"
  std::string_view ending;          // of its files: ".sbatch"
  std::string_view summary;         // "Slurm batch file"
  std::string_view placer = {};     // who chooses the hosts: "Slurm"; "": the user, with --ips or --master
  bool limits_time = false;         // its own time limit replaces --timeout
  bool takes_environment = false;   // a job gets variables of the shell that submits it
  bool brings_key = false;          // it hands out the key of --key_file by its own means
  bool logs_in_one_folder = false;  // the nodes may see the same log folder, so each gets one of its own
  bool takes_queue = false;         // --queue
  bool takes_image = false;         // --image
  std::string (*write)(const BatchRun& run) = nullptr;
};

const std::vector<Target>& targets();
std::vector<std::string> target_names();

// Throws Error(usage), with the name that was meant.
const Target& find_target(const std::string& name);

}  // namespace fleetrun::launch
