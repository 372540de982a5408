// The Python packages that `scripts/setup --peers` installs, for tests that run them. Where one is missing, its test is left out.
#pragma once
#include <cstdlib>
#include <string>

#include "e2e/launcher.h"

namespace fleetrun {

inline std::string folder_of_peers(const char* variable, const char* usual) {
  const char* chosen = std::getenv(variable);
  const char* home = std::getenv("HOME");
  if (chosen != nullptr) return std::string(chosen) + "/bin";
  return std::string(home == nullptr ? "" : home) + "/.cache/fleetrun/" + usual + "/bin";
}

// The folders of their programs: PaddlePaddle's, and those of the newest PyTorch.
inline std::string paddle_folder() { return folder_of_peers("FLEETRUN_PEERS", "peers"); }
inline std::string torch_folder() { return folder_of_peers("FLEETRUN_PEERS_TORCH", "peers-torch"); }

inline bool has_package(const std::string& folder, const std::string& name) {
  const ChildResult found =
      run_child({"/bin/sh", "-c",
                 "test -x " + folder + "/python3 && " + folder +
                     "/python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"" + name +
                     "\") is None)'"});
  return found.code == 0;
}

inline std::string no_package(const std::string& folder, const std::string& name) {
  return folder + "/python3 has no package " + name + "; scripts/test --peers installs it";
}

}  // namespace fleetrun
