// One connection to the store: frames in, frames out, a deadline for the handshake. Knows bytes, decides
// nothing.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/store_protocol.h"

namespace fleetrun::launch {

// Shared, because each pending operation of the event loop keeps its connection alive until it is told of the
// end.
class StoreConnection : public std::enable_shared_from_this<StoreConnection> {
 public:
  struct Callbacks {
    std::function<void(const store_protocol::Message&)> on_message;
    std::function<void(const std::string& why)> on_end;  // once; the connection is closed by then
  };

  explicit StoreConnection(boost::asio::ip::tcp::socket socket);

  void start(Callbacks callbacks, std::chrono::milliseconds handshake_deadline);
  void proven();  // no deadline any more, and frames of full size
  void send(const store_protocol::Message& message);
  void close_when_sent(std::string why);
  void close(const std::string& why);

  const std::string& peer_address() const { return peer_address_; }

 private:
  void read_length();
  void read_message(std::size_t bytes);
  void write_next();

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer handshake_timer_;
  std::string peer_address_;
  Callbacks callbacks_;
  std::size_t max_frame_ = store_protocol::kMaxUnprovenFrame;
  std::array<char, store_protocol::kLengthBytes> length_{};
  std::string input_;
  std::deque<std::string> output_;  // the first is being written
  std::optional<std::string> closing_;
  bool closed_ = false;
};

}  // namespace fleetrun::launch
