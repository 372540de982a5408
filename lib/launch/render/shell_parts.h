// Parts that several batch files share.
#pragma once
#include <string>

#include "launch/render/batch_run.h"

namespace fleetrun::launch {

// The comment at the top: what the file is, what made it, and how to use it.
std::string file_header(const BatchRun& run, const std::string& what, const std::string& how);

// The words of fleetrun after the flags that the file adds: `arguments=(...)`, one word a line.
std::string arguments_array(const BatchRun& run);

// The value of --nnodes: "4", or "2:4" if the run is elastic. `most`: the number of nodes, or a shell expression for it.
std::string nnodes_value(const BatchRun& run, const std::string& most);

std::string program_name(const BatchRun& run);   // of fleetrun on the nodes, as a word of a shell
std::string change_folder(const BatchRun& run);  // "cd /srv/training || exit 66", or "" without --folder

// Waits for the process "$run" until it has ended, whatever signals this script gets. A trap sets `again`; `code` is the exit code.
std::string wait_for_run(const BatchRun& run);

// For batch systems that start a script on the first node only: starts fleetrun on all nodes. `others` are lines that start it on the
// node "$rank", with the function start; "$run" is the process on the first node.
std::string start_nodes(const BatchRun& run, const std::string& others);

// Why the port of a meeting point is what it is, and its assignment; `job_number` is a shell expression.
std::string meeting_port(const BatchRun& run, const std::string& job_number);

// The other nodes may finish a run without a node that is lost, at the latest when the ranks of that node have ended: then `code` is that
// of the run, which another node knows. "" for runs on one node.
std::string code_of_finished_run(const BatchRun& run);

// SIGINT and SIGTERM stop the run; waits, and ends with the exit code of the run, which is that of node 0.
std::string wait_for_first_node(const BatchRun& run);

}  // namespace fleetrun::launch
