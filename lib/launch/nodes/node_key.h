// The secret that the nodes of a run share, so that nobody else can start programs on them.
#pragma once
#include <string>

#include "base/run/run_key.h"
#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"

namespace fleetrun::launch {

struct NodeKey {
  RunKey key;
  std::string file = "~/.fleetrun/key";  // as the user wrote it in --key_file
  bool by_munge =
      false;  // nobody chose it: nodes with another key may get the one of the first node through MUNGE
};

// Reads the key from --key_file or ~/.fleetrun/key. Creates the latter if it does not exist, so nodes that share a home
// share the key. If that fails and MUNGE works, makes a key without a file. The key that another fleetrun gave to this one comes first. With
// --insecure, returns a key that everybody knows. Throws Error(missing|permission|protocol).
NodeKey find_node_key(const LaunchOptions& options, const Environment& environment);

// The key of the ranks of one run.
RunKey derive_rank_key(const RunKey& node_key, const std::string& run_id);

}  // namespace fleetrun::launch
