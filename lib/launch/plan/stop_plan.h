// What a stop leaves of a job's training, and the command that goes on with it. Decided before the run starts.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "job/spec/job_spec.h"

namespace fleetrun::launch {

struct StopPlan {
  bool of_job = false;           // the ranks train a job; else nothing is known of what they save
  bool has_checkpoints = false;  // the job has checkpoint.dir
  bool resumes = false;  // the same command goes on from the newest checkpoint, or from the one that it names
  bool begins_elsewhere = false;  // checkpoint.resume names a checkpoint, or is "never"
  bool saves_in_logs = false;     // without checkpoint.dir, a stop saves a checkpoint in the log folder
  std::vector<std::string>
      command;  // as the user typed it, up to the job file; empty: something else started this node
  std::vector<std::string> settings;  // the words after the job file: "train.epochs=2"
};

// What the run has left on the disk when it ends.
enum class Saved {
  unknown,  // the ranks did not get to their first step, or went on from an earlier checkpoint
  nothing,
  own_checkpoint,  // so checkpoint.resume=auto continues the run
  weights,         // of the complete training
  elsewhere,       // the training is complete, and rank 0 is on another node, which says what it has saved
};

// Who is there when the run is stopped.
struct StopFacts {
  bool on_terminal = false;
  bool one_node = true;
};

StopPlan plan_stop(const job::CheckpointSpec& checkpoint, const StopFacts& facts);

// `words`: the command line without the program's name, of which the last `settings` ones come after the job file.
void set_command(const std::string& program, const std::vector<std::string>& words, std::size_t settings,
                 StopPlan& plan);

// One line for the user before the start, if a stop will lose the training; else "".
std::string warn_of_stop(const StopPlan& plan);

// What the user reads at the end of a run that was stopped: the command that goes on, on a line of its own, with "***" in place
// of secrets. `was_stopped`: by a signal to fleetrun, or by --timeout once the run has saved a checkpoint. `train`: the text of log/train.json, which also tells of a signal to a rank; "" when there
// is none. Returns "" if no command continues the run.
std::string describe_going_on(const StopPlan& plan, bool was_stopped, const std::string& train,
                              Saved saved = Saved::unknown);

}  // namespace fleetrun::launch
