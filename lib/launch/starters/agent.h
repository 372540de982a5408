// A fleetrun that another one started on its node of the run.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "base/system/unique_fd.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/schedulers/allocation.h"
#include "launch/starters/agent_order.h"

namespace fleetrun::launch {

// The first word of the command line of an agent, before those of the user. `order_file` "": the order comes over standard input.
std::string agent_word(const std::string& order_file);
bool is_agent_word(const std::string& word);

class Agent {
 public:
  // Reads the order, and finds out which node this is. From now on the standard input of this process is empty, its standard output goes
  // where the standard error goes, and it gets SIGHUP when the starter closes what was its standard input. Throws Error.
  explicit Agent(const std::string& word);

  bool is_first() const {
    return node_ == 0;
  }  // the starter does not leave out the node from which it started
  CalledAs called_as() const { return order_.called_as; }
  // Works in the folder of the run, with its variables. Throws Error(missing) when this host has no such folder.
  void enter() const;
  Allocation settle(LaunchOptions& options) const;
  void tell_end(int exit_code) const;  // to the fleetrun that started this one

 private:
  void take_descriptors(bool by_input);

  AgentOrder order_;
  int node_ = 0;
  UniqueFd input_, output_;
};

}  // namespace fleetrun::launch
