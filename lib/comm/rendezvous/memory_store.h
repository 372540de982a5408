// A store inside one process: for ranks that are threads, and for a world of one.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>

#include "comm/rendezvous/store.h"

namespace fleetrun::comm {

class MemoryStore : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::optional<std::string> look(const std::string& key) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace fleetrun::comm
