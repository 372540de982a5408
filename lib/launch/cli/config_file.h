// A JSON file with values for flags: {"nproc_per_node": 4, "log_dir": "logs"}; a list where a flag may come often.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "launch/cli/flags/flag.h"

namespace fleetrun::launch {

struct ConfigFile {
  std::string path;
  std::map<std::string, std::vector<std::string>> texts;  // by the first name of the flag

  std::vector<std::string> texts_of(const Flag& flag) const;
  Source source_of(const Flag& flag) const;
};

// Throws Error(config), with line and column of everything that is wrong, and what read_file throws.
ConfigFile read_config_file(const std::string& path, const std::vector<Flag>& table);

}  // namespace fleetrun::launch
