#include "runtime/kernels/cpu/loops/instruction_set.h"

#include <doctest/doctest.h>

#include "support/child_process.h"

namespace fleetrun::runtime {
namespace {

TEST_CASE("our loops use the instructions that oneDNN may use" * doctest::test_suite("held down")) {
  CHECK(vector_level() == vector_level_of(instruction_sets()));
}

// oneDNN reads the variable once in a process.
TEST_CASE("ONEDNN_MAX_CPU_ISA holds oneDNN and our loops to the same level") {
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    for (const char* value :
         {"SSE41", "AVX", "AVX2", "avx2", "AVX512_CORE", "AVX512_CORE_BF16", "ALL", "no such set", ""}) {
      CAPTURE(variable);
      CAPTURE(value);
      const ChildResult result =
          run_child({"/proc/self/exe", "--test-suite=held down"}, {.environment = {{variable, value}}});
      INFO(result.out);
      CHECK(result.code == 0);
      CHECK(result.out.find("1 passed") != std::string::npos);
    }
}

}  // namespace
}  // namespace fleetrun::runtime
