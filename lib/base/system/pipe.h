// A pipe whose ends no started program inherits.
#pragma once
#include "base/system/unique_fd.h"

namespace fleetrun {

struct Pipe {
  UniqueFd read_end, write_end;
};

Pipe make_pipe();  // Throws Error(os).

}  // namespace fleetrun
