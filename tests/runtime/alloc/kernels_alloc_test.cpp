#include <doctest/doctest.h>

#include "support/counting_malloc.h"
#include "support/leave_out.h"
#include "support/run_program.h"
#include "support/small_net.h"

namespace fleetrun::runtime::kernels_alloc_test {
namespace {

using fleetrun::runtime::test::AllocationCount;
using test::ProgramRun;

// oneDNN 2.6 multiplies matrices by kernels of fixed size with AVX-512 and by its gemm otherwise, whose
// packing buffers come from posix_memalign in every call.
bool has_avx512() { return __builtin_cpu_supports("avx512bw"); }

TEST_CASE("the kernels of a training step allocate nothing once they have run") {
  if (!has_avx512()) LEAVE_OUT("oneDNN allocates in matrix products without AVX-512");
  const auto device = make_cpu_device();
  for (const int team : {1, 2}) {
    device->enter_thread(team);
    ProgramRun run(test::small_net(3), all_ops(), *device);
    run.run();
    AllocationCount count;
    for (int step = 0; step < 10; ++step) {
      run.context().step = static_cast<std::uint64_t>(step);
      run.run();
    }
    const long allocations = count.so_far();
    INFO("team of " << team);
    CHECK(allocations == 0);
  }
}

TEST_CASE("new memory for every value makes no kernel allocate") {
  if (!has_avx512()) LEAVE_OUT("oneDNN allocates in matrix products without AVX-512");
  const auto device = make_cpu_device();
  device->enter_thread(1);
  ProgramRun run(test::small_net(3), all_ops(), *device);
  run.run();
  run.move_to_new_memory();
  AllocationCount count;
  run.run();
  const long allocations = count.so_far();
  CHECK(allocations == 0);
}

}  // namespace
}  // namespace fleetrun::runtime::kernels_alloc_test
