// Where ranks leave small values for each other: a key is set by one and read by others, before or after.
#pragma once
#include <optional>
#include <string>

#include "comm/rendezvous/deadline.h"

namespace fleetrun::comm {

class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until somebody has set it. Throws Error(temporary) that names the key when the deadline passes.
  virtual std::string get(const std::string& key, Deadline deadline) = 0;
  // What is there now.
  virtual std::optional<std::string> look(const std::string& key) = 0;
};

}  // namespace fleetrun::comm
