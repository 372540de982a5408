#include "launch/loop/read_frames.h"

#include <string_view>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {
namespace wire = store_protocol;
}  // namespace

std::string read_frames(PeerServer& peers, PeerId id, std::string input,
                        const std::function<void(const wire::Message&)>& on_message) {
  std::size_t used = 0;
  while (input.size() - used >= wire::kLengthBytes && peers.listens_to(id)) {
    const std::size_t bytes = wire::decode_length(input.data() + used);
    const std::size_t most = peers.is_trusted(id) ? wire::kMaxFrame : wire::kMaxUnprovenFrame;
    if (bytes == 0 || bytes > most) {
      peers.drop(id, fmt::format("a frame of {} bytes, wanted at most {}", bytes, most));
      return "";
    }
    if (input.size() - used < wire::kLengthBytes + bytes) break;
    const auto message = wire::decode(std::string_view(input).substr(used + wire::kLengthBytes, bytes));
    if (message)
      on_message(*message);
    else
      peers.drop(id, "its bytes are not a message of the store protocol");
    used += wire::kLengthBytes + bytes;
  }
  return input.erase(0, used);
}

}  // namespace fleetrun::launch
