// Loops over arrays, compiled for several instruction sets; each call takes the one that vector_level() says. A loop is a
// function marked FLEETRUN_VECTOR_LOOP, with all that it calls inlined, and is called as vector_clones<loop>(arguments).
// Results do not depend on the choice: the build forbids contracting a*b+c (-ffp-contract=off).
#pragma once
#include "base/number/vector_level.h"

#define FLEETRUN_VECTOR_LOOP __attribute__((always_inline)) inline

// Sanitizers look at one version; three would take three times as long to compile.
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define FLEETRUN_HAS_VECTOR_CLONES 1
#else
#define FLEETRUN_HAS_VECTOR_CLONES 0
#endif

namespace fleetrun {

template <auto loop>
struct VectorClones;

template <typename Result, typename... Arguments, Result (*loop)(Arguments...)>
struct VectorClones<loop> {
#if FLEETRUN_HAS_VECTOR_CLONES
  [[gnu::noinline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]] static Result avx512(
      Arguments... arguments) {
    return loop(arguments...);
  }
  [[gnu::noinline, gnu::target("avx2,fma,f16c")]] static Result avx2(Arguments... arguments) {
    return loop(arguments...);
  }
#endif
  [[gnu::noinline]] static Result baseline(Arguments... arguments) { return loop(arguments...); }

  static Result call(Arguments... arguments) {
#if FLEETRUN_HAS_VECTOR_CLONES
    const VectorLevel level = vector_level();
    if (level >= VectorLevel::avx512) return avx512(arguments...);
    if (level == VectorLevel::avx2) return avx2(arguments...);
#endif
    return baseline(arguments...);
  }
};

template <auto loop>
constexpr auto vector_clones = &VectorClones<loop>::call;

}  // namespace fleetrun
