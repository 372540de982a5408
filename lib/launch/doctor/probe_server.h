// Where the other nodes measure their links to this node: a thread that accepts connections, sends single bytes back,
// and counts the bytes of transfers.
//
//   the first byte of a connection says what follows:
//   'e'   each byte comes back at once
//   's'   data; when the sender has shut down its side, the number of bytes comes back: 8 bytes, little endian
#pragma once
#include <atomic>
#include <thread>
#include <vector>

#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"

namespace fleetrun::launch {

class ProbeServer {
 public:
  // Listens on the first free one of these ports, else on any: a firewall may let only the ports of the ranks through.
  ProbeServer(const std::string& address, const std::vector<int>& ports);
  ~ProbeServer();
  ProbeServer(const ProbeServer&) = delete;
  ProbeServer& operator=(const ProbeServer&) = delete;

  std::uint16_t port() const { return endpoint_.port; }  // 0: it could not listen

 private:
  void serve();

  Endpoint endpoint_;
  UniqueFd listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace fleetrun::launch
