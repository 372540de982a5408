#include "cuda/on_host/counts.h"

#include "cuda/on_host/stream.h"

namespace fleetrun::cuda::on_host {

Counts& counts() {
  static Counts all;
  return all;
}

}  // namespace fleetrun::cuda::on_host

extern "C" __attribute__((visibility("default"))) const fleetrun::cuda::on_host::Counts*
fleetrun_on_host_counts() {
  return &fleetrun::cuda::on_host::counts();
}
