// The store in the launcher, as a rank reaches it: one authenticated connection, one request at a time (calls
// of several threads wait for each other). Errors name the store's endpoint and what was waited for:
// Error(temporary) when a deadline passes or the launcher is gone, Error(protocol) when the two do not belong
// together (key, run, attempt, version, a rank that is there already).
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/run/run_key.h"
#include "base/run/store_protocol.h"
#include "base/system/endpoint.h"
#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/store.h"

namespace fleetrun::comm {

class StoreClient : public Store {
 public:
  // Connects and proves both sides to each other.
  StoreClient(const Endpoint& endpoint, const RunKey& key, const store_protocol::Identity& identity,
              Deadline deadline);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::optional<std::string> look(const std::string& key) override;

  // Of the interface that reaches the store: where this rank can be reached by the others.
  std::string local_address() const { return socket_.local_address(); }

 private:
  void handshake(const RunKey& key, Deadline deadline);
  store_protocol::Message ask(const store_protocol::Message& request, Deadline deadline,
                              const std::string& what);
  // Nothing when the deadline passed.
  std::optional<store_protocol::Message> receive(Deadline deadline);
  store_protocol::Message expect(Deadline deadline, const std::string& what);
  std::string who() const;

  const store_protocol::Identity identity_;
  Socket socket_;
  std::string input_;  // the frame that is coming in
  std::mutex mutex_;
  std::uint32_t last_id_ = 0;
};

}  // namespace fleetrun::comm
