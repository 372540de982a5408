#include "base/number/vector_level.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/system/environment.h"

namespace fleetrun {
namespace {

// oneDNN's names that stand for less than all. Its levels for Xeon Phi lack instructions that ours for AVX-512 use.
constexpr std::array kNames = {
    std::pair{"SSE41", VectorLevel::baseline},     std::pair{"AVX", VectorLevel::baseline},
    std::pair{"AVX2", VectorLevel::avx2},          std::pair{"AVX2_VNNI", VectorLevel::avx2},
    std::pair{"AVX512_MIC", VectorLevel::avx2},    std::pair{"AVX512_MIC_4OPS", VectorLevel::avx2},
    std::pair{"AVX512_CORE", VectorLevel::avx512}, std::pair{"AVX512_CORE_VNNI", VectorLevel::avx512}};

#if defined(__x86_64__)
// clang 14 does not know the names of these two.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
bool has_avx512_bf16() {
  constexpr unsigned kExtendedFeatures = 7, kSubleaf = 1,
                     kBf16 = 1U << 5;  // Intel's manual, volume 2A, CPUID
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kExtendedFeatures, kSubleaf, &a, &b, &c, &d) != 0 && (a & kBf16) != 0;
}
#endif

VectorLevel most_available() {
  static const VectorLevel most =
      std::min(vector_level_of_processor(), vector_level_allowed(Environment::of_this_process()));
  return most;
}

}  // namespace

std::string_view describe(VectorLevel level) {
  switch (level) {
    case VectorLevel::avx2:
      return "avx2";
    case VectorLevel::avx512:
      return "avx512";
    case VectorLevel::avx512_bf16:
      return "avx512_bf16";
    case VectorLevel::baseline:
      break;
  }
  return "baseline";
}

VectorLevel vector_level_of_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
    return VectorLevel::baseline;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return VectorLevel::avx2;
  return has_avx512_bf16() ? VectorLevel::avx512_bf16 : VectorLevel::avx512;
#else
  return VectorLevel::baseline;
#endif
}

VectorLevel vector_level_allowed(const Environment& environment) {
  std::string name = environment.get_or("ONEDNN_MAX_CPU_ISA", "");
  if (name.empty()) name = environment.get_or("DNNL_MAX_CPU_ISA", "");
  for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  for (const auto& [known, level] : kNames)
    if (name == known) return level;
  return VectorLevel::avx512_bf16;
}

void limit_vector_level(VectorLevel most) {
  detail::vector_level_in_use.store(std::min(most, most_available()), std::memory_order_relaxed);
}

std::atomic<VectorLevel> detail::vector_level_in_use = most_available();

}  // namespace fleetrun
