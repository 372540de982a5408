#include "runtime/kernels/cpu/loops/instruction_set.h"

#include <array>

#include <dnnl.hpp>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

// From best to least, without those of processors that are no longer made (Xeon Phi).
constexpr std::array kSets = {dnnl_cpu_isa_avx512_core_amx,
                              dnnl_cpu_isa_avx512_core_bf16,
                              dnnl_cpu_isa_avx512_core_vnni,
                              dnnl_cpu_isa_avx512_core,
                              dnnl_cpu_isa_avx2_vnni,
                              dnnl_cpu_isa_avx2,
                              dnnl_cpu_isa_avx,
                              dnnl_cpu_isa_sse41};

}  // namespace

unsigned instruction_sets() { return static_cast<unsigned>(dnnl_get_effective_cpu_isa()); }

VectorLevel vector_level_of(unsigned sets) {
  const auto has = [&](dnnl_cpu_isa_t set) {
    return (sets & static_cast<unsigned>(set)) == static_cast<unsigned>(set);
  };
  if (has(dnnl_cpu_isa_avx512_core_bf16)) return VectorLevel::avx512_bf16;
  if (has(dnnl_cpu_isa_avx512_core)) return VectorLevel::avx512;
  return has(dnnl_cpu_isa_avx2) ? VectorLevel::avx2 : VectorLevel::baseline;
}

void limit_instruction_sets(unsigned common) {
  if (common == instruction_sets()) return;
  for (const dnnl_cpu_isa_t set : kSets) {
    if ((common & static_cast<unsigned>(set)) != static_cast<unsigned>(set)) continue;
    if (dnnl_set_max_cpu_isa(set) != dnnl_success)
      throw Error(ErrorKind::internal,
                  "oneDNN refused to be held to the common instruction set of all ranks");
    limit_vector_level(vector_level_of(static_cast<unsigned>(set)));
    return;
  }
  throw Error(ErrorKind::config,
              "the processors of the ranks have no vector instructions in common that oneDNN can use");
}

}  // namespace fleetrun::runtime
