// One store that several ranks of a test own.
#pragma once
#include <optional>
#include <string>

#include "comm/rendezvous/store.h"

namespace fleetrun::testing {

// Passes everything on to `store`, which outlives it.
class SharedStore : public comm::Store {
 public:
  explicit SharedStore(comm::Store& store) : store_(store) {}
  void set(const std::string& key, const std::string& value) override { store_.set(key, value); }
  std::string get(const std::string& key, comm::Deadline deadline) override {
    return store_.get(key, deadline);
  }
  std::optional<std::string> look(const std::string& key) override { return store_.look(key); }

 private:
  comm::Store& store_;
};

}  // namespace fleetrun::testing
