#include "base/number/vector_level.h"

#include <doctest/doctest.h>

#include "base/system/environment.h"

namespace fleetrun {
namespace {

VectorLevel allowed_by(const std::map<std::string, std::string>& variables) {
  Environment environment;
  for (const auto& [name, value] : variables) environment.set(name, value);
  return vector_level_allowed(environment);
}

TEST_CASE("ONEDNN_MAX_CPU_ISA holds our loops to the instruction set that oneDNN takes it for") {
  constexpr VectorLevel kBest = VectorLevel::avx512_bf16;
  CHECK(allowed_by({}) == kBest);
  for (const auto& [name, level] :
       std::map<std::string, VectorLevel>{{"SSE41", VectorLevel::baseline},
                                          {"AVX", VectorLevel::baseline},
                                          {"AVX2", VectorLevel::avx2},
                                          {"AVX2_VNNI", VectorLevel::avx2},
                                          {"AVX512_MIC", VectorLevel::avx2},
                                          {"AVX512_MIC_4OPS", VectorLevel::avx2},
                                          {"AVX512_CORE", VectorLevel::avx512},
                                          {"AVX512_CORE_VNNI", VectorLevel::avx512},
                                          {"AVX512_CORE_BF16", kBest},
                                          {"AVX512_CORE_AMX", kBest},
                                          {"ALL", kBest}}) {
    CAPTURE(name);
    CHECK(allowed_by({{"ONEDNN_MAX_CPU_ISA", name}}) == level);
  }
  CHECK(allowed_by({{"ONEDNN_MAX_CPU_ISA", "avx2"}}) == VectorLevel::avx2);
  CHECK(allowed_by({{"ONEDNN_MAX_CPU_ISA", "AVX9"}}) == kBest);
}

TEST_CASE("the variable's older name counts where the newer one is unset or empty") {
  CHECK(allowed_by({{"DNNL_MAX_CPU_ISA", "AVX2"}}) == VectorLevel::avx2);
  CHECK(allowed_by({{"DNNL_MAX_CPU_ISA", "AVX2"}, {"ONEDNN_MAX_CPU_ISA", ""}}) == VectorLevel::avx2);
  CHECK(allowed_by({{"DNNL_MAX_CPU_ISA", "AVX2"}, {"ONEDNN_MAX_CPU_ISA", "SSE41"}}) == VectorLevel::baseline);
  CHECK(allowed_by({{"DNNL_MAX_CPU_ISA", "AVX2"}, {"ONEDNN_MAX_CPU_ISA", "AVX9"}}) ==
        VectorLevel::avx512_bf16);
}

TEST_CASE("the level can be lowered and raised again, but not above what the processor has") {
  const VectorLevel before = vector_level();
  CHECK(before <= vector_level_of_processor());
  limit_vector_level(VectorLevel::baseline);
  CHECK(vector_level() == VectorLevel::baseline);
  limit_vector_level(VectorLevel::avx512_bf16);
  CHECK(vector_level() == before);
}

}  // namespace
}  // namespace fleetrun
