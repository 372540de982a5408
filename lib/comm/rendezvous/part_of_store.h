// The part of a store whose keys begin with a prefix: for what only some of the ranks tell each other.
#pragma once
#include <string>
#include <utility>

#include "comm/rendezvous/store.h"

namespace fleetrun::comm {

class PartOfStore : public Store {
 public:
  PartOfStore(Store& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}

  void set(const std::string& key, const std::string& value) override { store_.set(prefix_ + key, value); }
  std::string get(const std::string& key, Deadline deadline) override {
    return store_.get(prefix_ + key, deadline);
  }
  std::optional<std::string> look(const std::string& key) override { return store_.look(prefix_ + key); }

 private:
  Store& store_;
  const std::string prefix_;
};

}  // namespace fleetrun::comm
