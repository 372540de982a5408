#include "runtime/kernels/cpu/loops/instruction_set.h"

#include <doctest/doctest.h>
#include <dnnl.hpp>

#include "support/child_process.h"
#include "support/leave_out.h"

namespace fleetrun::runtime {
namespace {

TEST_CASE("our loops use the instructions that oneDNN may use" * doctest::test_suite("held down")) {
  CHECK(vector_level() == vector_level_of(instruction_sets()));
}

// Changes this process: by the next test, in one of its own.
TEST_CASE("oneDNN that only a child process has asked can be held to less" *
          doctest::test_suite("held to less") * doctest::skip()) {
  const unsigned sets = instruction_sets_of_child();
  CHECK(limit_instruction_sets(sets & dnnl_cpu_isa_avx2) == "AVX2");
  CHECK(instruction_sets() == dnnl_cpu_isa_avx2);
  CHECK(vector_level() == VectorLevel::avx2);
}

TEST_CASE("ranks may be held to the instructions that all processors have") {
  if (vector_level_of_processor() < VectorLevel::avx2) LEAVE_OUT("needs AVX2");
  const ChildResult result = run_child({"/proc/self/exe", "--no-skip", "--test-suite=held to less"}, {});
  INFO(result.out);
  CHECK(result.code == 0);
  CHECK(result.out.find("1 passed") != std::string::npos);
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
