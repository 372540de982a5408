// Loops over arrays are compiled for several instruction sets; the best is chosen when the program starts.
// Results do not depend on the choice: the build forbids contracting a*b+c (-ffp-contract=off).
#pragma once

#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define FLEETRUN_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FLEETRUN_VECTOR_CLONES  // the sanitizers' code would run before they are set up
#endif
