// The socket log/.control: who runs as the same user may ask a running fleetrun for its ranks, stop it, or have a
// signal sent. One line of text in, one line out; then the connection stays open until the peer closes it or the run
// is over, so that a peer can wait for the end of this very run.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/unique_fd.h"
#include "launch/logs/log_folder.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

class ControlServer {
 public:
  // Gets a request without its line end and who sent it ("process 4711"), gives the answer.
  using Answer = std::function<std::string(const std::string& request, const std::string& sender)>;

  // Where the folder's file system has no sockets there is none, and that is no error.
  ControlServer(EventLoop& loop, const LogFolder& folder, Answer answer);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  bool listens() const { return static_cast<bool>(socket_); }

  // Nobody is answered any more: the loop has stopped.
  void close();

 private:
  using PeerId = std::uint64_t;
  struct Peer {
    UniqueFd fd;
    std::string sender, request, answer;
    std::size_t sent = 0;

    bool was_answered() const { return !answer.empty() && sent == answer.size(); }
  };

  void welcome();
  void welcome_later();
  void read_from(PeerId id);
  void write_to(PeerId id);
  void drop(PeerId id);

  EventLoop& loop_;
  const LogFolder& folder_;
  Answer answer_;
  UniqueFd socket_;
  std::map<PeerId, Peer> peers_;
  PeerId last_id_ = 0;
};

}  // namespace fleetrun::launch
