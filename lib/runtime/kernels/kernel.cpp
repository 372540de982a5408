#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime {

std::set<std::string, std::less<>> ops_of(const KernelTable& kernels) {
  std::set<std::string, std::less<>> ops;
  for (const auto& [op, kernel] : kernels) ops.insert(op);
  return ops;
}

}  // namespace fleetrun::runtime
