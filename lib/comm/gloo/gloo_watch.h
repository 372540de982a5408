// Adds what Gloo's TCP transport lacks: watches its connections, and wakes threads that wait for a lost peer. (Gloo
// itself wakes a thread only if its message has not begun. A wait for a half-sent message ends at its timeout, and Gloo
// never notices a network that drops everything.) It wraps Gloo's interfaces, because not all headers of the TCP
// transport are installed. Private to the Gloo backend.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "comm/gloo/lost_peer.h"

namespace gloo {
class Context;
namespace transport {
class Device;
}
}  // namespace gloo

namespace fleetrun::comm {

class WakeableBuffer;

// The address in Gloo's bytes, such as "10.0.0.1:4711".
std::string describe_end(const std::vector<char>& bytes);

// Our end of the connection to each rank, such as "10.0.0.1:4711"; "" for our own rank.
std::vector<std::string> own_ends(gloo::Context& context);

// The connections of one mesh. Any thread may ask.
class GlooWatch {
 public:
  // A device like `inner`. The watch can end the waits of a context made with it, and outlives that context.
  std::shared_ptr<gloo::transport::Device> device(std::shared_ptr<gloo::transport::Device> inner);

  // Begins to watch. Call it when all ranks are connected. `ends_of_peers`: what own_ends() says of us on each rank.
  // Throws Error(internal) when it cannot find a connection.
  void begin(gloo::Context& context, const std::vector<std::string>& ends_of_peers);
  void end();  // call it before the context ends: the copies here would keep connections open
  // Takes over the connections that `other` watches, of another mesh of the same ranks. Returns copies of them, by
  // rank.
  std::vector<UniqueFd> take(GlooWatch& other, int ranks);

  // Looks at all connections, and wakes threads that wait for a lost peer. If the peer fell silent, wakes all waiting
  // threads, because work never ends like that. Call it now and then from an idle thread. Allocates nothing.
  void look();
  std::optional<LostPeer> first_lost() const;

  void add(WakeableBuffer& buffer);
  void remove(WakeableBuffer& buffer);

 private:
  struct Connection {
    int rank = 0;
    UniqueFd fd;  // a copy of Gloo's
    std::string address;
    std::chrono::milliseconds unanswered{0};  // at the last look that still found the peer
  };

  std::optional<LostPeer> falling_silent() const;

  mutable std::mutex mutex_;
  std::vector<Connection> connections_;
  std::vector<WakeableBuffer*> buffers_;
  std::optional<LostPeer> first_;
};

}  // namespace fleetrun::comm
