// The standard input of fleetrun, as its ranks get it.
#pragma once
#include <sys/types.h>

#include <vector>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

// A file is read from where it stood when the run began, by each rank of each attempt for itself. What goes through a pipe or a socket
// can be read once, by the first rank of this node. No rank reads a terminal: it has a process group of its own, which reading would stop
// for ever.
class RunInput {
 public:
  RunInput();  // before the first rank starts

  // For the ranks of an attempt on this node, in their order; the last one is for all ranks after it, too. Throws Error(missing) if
  // the ranks of an earlier attempt have read from a pipe or a socket.
  std::vector<UniqueFd> open_for(std::size_t ranks);

 private:
  void require_unread();

  enum class Kind { none, file, stream, other };

  Kind kind_ = Kind::none;
  off_t offset_ = 0;  // of a file
  int waiting_ = 0;   // bytes of a stream that nobody had read yet: the most that we have seen
  bool was_given_ = false;
};

}  // namespace fleetrun::launch
