// What a batch file or manifest says about a run: read from the flags of the run and from its job file, before any text is written.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/spec/job_spec.h"

namespace fleetrun::launch {

struct Target;

// The flags of `fleetrun render` itself, which no run has.
struct RenderFlags {
  std::string folder;                 // where the run starts; "": the target decides
  std::string fleetrun;               // path of fleetrun on the nodes; "": the target decides
  std::string image;                  // of containers; "": a name that the user replaces
  std::string queue;                  // Slurm's partition, the queue of PBS and LSF; "": the default one
  std::vector<std::string> as_typed;  // all of them, for the line that says how the file was made
};

struct BatchRun {
  RenderFlags own;
  std::vector<std::string> made_by;   // the whole command: "fleetrun", "render", "slurm", ...
  std::string name;                   // lower-case letters, digits and '-', at most kLongestName
  int nodes = 1;                      // at most, if the run is elastic
  std::optional<int> least_nodes;     // with which an elastic run goes on; none: it needs all nodes
  std::optional<int> least_to_start;  // MIN of --nnodes=MIN:MAX
  int gpus = 0;                       // of each node
  std::optional<int> cores;           // of each node; none: all cores of the node
  std::vector<std::string> flags;  // for fleetrun, without those that the target expresses in its own words
  std::vector<std::string>
      program;  // script, job file or program with its arguments, after "--" where that is needed
  std::vector<std::string> hosts;  // of --ips
  std::string log_dir;
  std::string key_file;  // "": the one in the home folder
  bool insecure = false;
  std::optional<std::uint16_t> port;  // where the nodes meet
  std::chrono::seconds grace{0};      // rounded up
  std::chrono::seconds kill_wait{0};  // rounded up
  std::optional<std::chrono::seconds> timeout;
  std::vector<std::string> inherited;  // variables that the run takes from the shell that submits it
  bool resumes = false;  // the job file has checkpoints, and the same command goes on from the newest one

  // How long fleetrun takes at most to end the run after SIGTERM.
  std::chrono::seconds stop_time() const;
};

constexpr std::size_t kLongestName = 40;  // Kubernetes adds an index and allows 63 characters

// Of the job file: none for any other program.
using JobFacts = std::optional<job::JobSpec>;

// `words` are the flags of the run, its program and the arguments of that. Touches no file but that of --config. Throws Error(usage) for
// flags that make no sense for the target, and for what parse_launch_options throws.
BatchRun plan_batch_run(const Target& target, const RenderFlags& own, const std::vector<std::string>& words,
                        const JobFacts& job);

}  // namespace fleetrun::launch
