// The socket log/.control: who runs as the same user may ask a running fleetrun for its ranks, stop it, or have a
// signal sent. One line of text in, one line out; then the connection stays open until the peer closes it or the run
// is over, so that a peer can wait for the end of this very run.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "launch/logs/log_folder.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/peer_server.h"

namespace fleetrun::launch {

constexpr std::size_t kMostControlPeers = 64;  // at a time

class ControlServer {
 public:
  using Reply = std::function<void(const std::string& answer)>;  // to be called once, also later
  // Gets a request without its line end and who sent it ("process 4711").
  using Answer = std::function<void(const std::string& request, const std::string& sender, Reply reply)>;

  // Without an error there is no socket where the folder's file system does not support them.
  // A peer has `patience` from its coming to the end of its request.
  ControlServer(EventLoop& loop, const LogFolder& folder, Answer answer,
                Clock::duration patience = std::chrono::seconds(5));
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  bool listens() const { return server_.has_value(); }

  // Stops answering: the loop has stopped.
  void close();

 private:
  std::optional<std::string> welcome(int fd) const;
  std::string read_request(const Peer& peer, std::string input);

  const LogFolder& folder_;
  Answer answer_;
  bool closed_ = false;
  std::optional<PeerServer> server_;  // last: it calls the others
};

}  // namespace fleetrun::launch
