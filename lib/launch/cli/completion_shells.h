// The completions by shell, and what they have in common.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flag.h"

namespace fleetrun::launch {

std::string bash_completion(const std::vector<Option>& table);
std::string zsh_completion(const std::vector<Option>& table);
std::string fish_completion(const std::vector<Option>& table);

std::vector<std::string> shown_names(const std::vector<Option>& options);
std::vector<std::string> subcommand_names();
std::string with_dashes(const std::string& name);  // "--log_dir" as "--log-dir", which is the same flag
std::string joined(const std::vector<std::string>& words);  // by spaces
std::string quoted_for_shell(const std::string& text);      // between single quotes

}  // namespace fleetrun::launch
