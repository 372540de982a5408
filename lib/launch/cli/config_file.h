// A JSON file with values for flags: {"nproc_per_node": 4, "log_dir": "logs"}; a list where a flag may come often.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "launch/cli/flag.h"

namespace fleetrun::launch {

struct OptionFile {
  std::string path;
  std::map<std::string, std::vector<std::string>> texts;  // by the first name of the option

  std::vector<std::string> texts_of(const Option& option) const;
  Source source_of(const Option& option) const;
};

// Throws Error(config), with line and column of everything that is wrong, and what read_file throws.
OptionFile read_option_file(const std::string& path, const std::vector<Option>& table);

}  // namespace fleetrun::launch
