// Tells whether two ranks are on the same host, as far as sharing memory is concerned.
#pragma once
#include <string>

namespace fleetrun::comm {

// Equal for processes of one boot of one machine with the same process and network namespaces. The network
// counts too: whoever puts ranks into networks of their own wants them to be apart.
std::string host_id();

}  // namespace fleetrun::comm
