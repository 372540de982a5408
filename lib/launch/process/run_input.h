// The standard input of fleetrun, as its ranks get it.
#pragma once
#include <sys/types.h>

#include <vector>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

// A file is read from where it stood when the run began, by each rank of each attempt for itself. What goes through a pipe or a socket
// can be read once: by the first rank of this node, or by nobody, because the ranks may start again. No rank reads a terminal: it has a
// process group of its own, which reading would stop for ever.
class RunInput {
 public:
  // Before the first rank starts. `reads_streams`: whether a rank may read from a pipe or a socket.
  explicit RunInput(bool reads_streams);

  // For the ranks of an attempt on this node, in their order; the last one is for all ranks after it, too. Throws Error(os).
  std::vector<UniqueFd> open_for(std::size_t ranks) const;

 private:
  enum class Kind { nothing, file, stream, other };

  Kind kind_ = Kind::nothing;
  UniqueFd copy_;     // of a file that we may not open again
  off_t offset_ = 0;  // of a file
};

// Bytes that wait in the pipe or socket on standard input. 0 for a file or a terminal.
int bytes_in_stream();

}  // namespace fleetrun::launch
