// Variables and files of a pretended scheduler.
#pragma once
#include <map>
#include <string>

#include "base/error/error.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch::test {

using Texts = std::map<std::string, std::string>;

inline SchedulerFacts facts_of(const Texts& variables, const Texts& files = {}) {
  SchedulerFacts facts;
  for (const auto& [name, value] : variables) facts.environment.set(name, value);
  facts.read_file = [files](const std::string& path) {
    const auto found = files.find(path);
    if (found == files.end()) throw Error(ErrorKind::missing, "no file " + path);
    return found->second;
  };
  return facts;
}

inline std::string hosts_of(const Allocation& allocation) {
  std::string text;
  for (const NodeSlots& node : allocation.nodes)
    text += (text.empty() ? "" : " ") + node.host + (node.slots ? ":" + std::to_string(*node.slots) : "");
  return text;
}

// What `work` throws, with its hint; "no error" when it throws nothing.
template <typename Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.message() + (error.hint().empty() ? "" : " | " + error.hint());
  }
  return "no error";
}

}  // namespace fleetrun::launch::test
