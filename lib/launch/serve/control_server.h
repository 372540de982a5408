// The socket log/.control: programs of the same user and of root can ask a running fleetrun for its ranks, stop it, or
// make it send a signal. A peer sends one line and gets one line. Then the connection stays open until the peer closes
// it or the run is over, so a peer can wait for the end of exactly this run.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "launch/logs/log_folder.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/peer_server.h"

namespace fleetrun::launch {

constexpr std::size_t kMostControlPeers = 64;  // at a time

class ControlServer {
 public:
  using Reply = std::function<void(const std::string& answer)>;  // called once, at once or later
  // Gets a request, without its line end, and the name of its sender ("process 4711").
  using Answer = std::function<void(const std::string& request, const std::string& sender, Reply reply)>;

  // If the folder's file system does not support sockets, it opens no socket, and that is not an error.
  // A peer has `patience` from its arrival until the end of its request. `answer` may be null until the loop runs.
  ControlServer(EventLoop& loop, const LogFolder& folder, Answer answer,
                Clock::duration patience = std::chrono::seconds(5));
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  bool listens() const { return server_.has_value(); }

  // Gives the requests from now on to another answerer.
  void answer_with(Answer answer) { answer_ = std::move(answer); }

  // Makes the socket anew in the folder, which somebody had removed. Peers stay connected.
  void listen_again();

  // Stops answering. Call it when the loop has stopped.
  void close();

 private:
  std::optional<std::string> welcome(int fd) const;
  std::string read_request(const Peer& peer, std::string input);

  const LogFolder& folder_;
  Answer answer_;
  bool closed_ = false;
  std::optional<PeerServer> server_;  // last: its callbacks use the members above
};

}  // namespace fleetrun::launch
