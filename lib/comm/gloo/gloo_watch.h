// Gloo's TCP transport, with what it lacks: its connections are watched, and who waits for a peer that is lost is
// woken. (Gloo wakes only those whose message has not begun: a wait for one that was half sent when the connection
// broke ends at its timeout, and a network that swallows everything is not noticed at all.)
// Done around Gloo's interfaces, since the headers of its TCP transport are not all installed. Inside of the Gloo
// backend.
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

// The connections of one mesh. Any thread may ask.
class GlooWatch {
 public:
  // A device like `inner`, for a context whose waits this watch, which outlives it, can end.
  std::shared_ptr<gloo::transport::Device> device(std::shared_ptr<gloo::transport::Device> inner);

  // Begins when all ranks are connected. Throws Error(internal) when a connection cannot be found.
  void begin(gloo::Context& context);
  void end();  // before the context: from now on its connections close when Gloo closes them
  // Watches the connections of another mesh of the same ranks too, in its place. Returns copies of them by rank.
  std::vector<UniqueFd> take(GlooWatch& other, int ranks);

  // Looks at all connections, and wakes who waits for a peer that is lost; all who wait when it was lost without a
  // word, which is never how work ends. To be called now and then by who has nothing else to do. Allocates nothing.
  void look();
  std::optional<LostPeer> first_lost() const;

  void add(WakeableBuffer& buffer);
  void remove(WakeableBuffer& buffer);

 private:
  struct Connection {
    int rank = 0;
    UniqueFd fd;  // a copy of Gloo's
    std::string address;
    std::chrono::milliseconds unanswered{0};  // as of the last look at which the peer was there
  };

  std::optional<LostPeer> falling_silent() const;

  mutable std::mutex mutex_;
  std::vector<Connection> connections_;
  std::vector<WakeableBuffer*> buffers_;
  std::optional<LostPeer> first_;
};

}  // namespace fleetrun::comm
