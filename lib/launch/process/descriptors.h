// All descriptors of this process from a number on, also on kernels and in sandboxes without close_range.
#pragma once

namespace fleetrun::launch {

void close_from(int first);
void close_on_exec_from(int first);  // no program that we execute gets them

}  // namespace fleetrun::launch
