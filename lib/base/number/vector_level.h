// Which vector instructions our own loops use: the best that the processor has, or fewer where ONEDNN_MAX_CPU_ISA says so.
// oneDNN reads the same variable, so it holds the whole process to one instruction set.
#pragma once
#include <atomic>
#include <string_view>

namespace fleetrun {

class Environment;

// From least to best. avx2 has fused multiply-add and f16c, too; avx512 is AVX-512 F, BW, DQ and VL, oneDNN's AVX512_CORE.
enum class VectorLevel { baseline, avx2, avx512, avx512_bf16 };

std::string_view describe(VectorLevel level);

VectorLevel vector_level_of_processor();

// The most that ONEDNN_MAX_CPU_ISA allows or, where that is unset or empty, DNNL_MAX_CPU_ISA. As oneDNN does, takes either case
// and ignores a value that it does not know.
VectorLevel vector_level_allowed(const Environment& environment);

// Holds our loops to `most`, or to less where the processor or the environment allows less. Later calls may raise it again.
void limit_vector_level(VectorLevel most);

namespace detail {
extern std::atomic<VectorLevel>
    vector_level_in_use;  // set when the library is loaded; loops ask for it at every call
}

inline VectorLevel vector_level() { return detail::vector_level_in_use.load(std::memory_order_relaxed); }

}  // namespace fleetrun
