// Environment variables as a value: read once, changed as a map, handed to a new process.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun {

class Environment {
 public:
  Environment() = default;
  static Environment of_this_process();

  std::optional<std::string> get(const std::string& name) const;
  std::string get_or(const std::string& name, const std::string& fallback) const;
  bool has(const std::string& name) const { return variables_.count(name) != 0; }
  void set(const std::string& name, std::string value) { variables_[name] = std::move(value); }
  void set_if_absent(const std::string& name, const std::string& value) {
    variables_.try_emplace(name, value);
  }
  void erase(const std::string& name) { variables_.erase(name); }

  const std::map<std::string, std::string>& variables() const { return variables_; }
  std::vector<std::string> lines() const;  // "NAME=value", sorted by name

  bool operator==(const Environment&) const = default;

 private:
  std::map<std::string, std::string> variables_;
};

}  // namespace fleetrun
