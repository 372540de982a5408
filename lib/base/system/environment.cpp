#include "base/system/environment.h"

#include <unistd.h>

#include <cstring>

namespace fleetrun {

Environment Environment::of_this_process() {
  Environment environment;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line)
    if (char* equals = std::strchr(*line, '='))
      environment.variables_.try_emplace(std::string(*line, equals), equals + 1);
  return environment;
}

std::optional<std::string> Environment::get(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

std::string Environment::get_or(const std::string& name, const std::string& fallback) const {
  return get(name).value_or(fallback);
}

std::vector<std::string> Environment::lines() const {
  std::vector<std::string> lines;
  lines.reserve(variables_.size());
  for (const auto& [name, value] : variables_) lines.push_back(name + "=" + value);
  return lines;
}

}  // namespace fleetrun
