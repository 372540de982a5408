// A case, or the rest of one, that this machine cannot show. It says what it left out and why; scripts/test counts these lines.
#pragma once
#include <doctest/doctest.h>

#define LEAVE_OUT(reason)              \
  do {                                 \
    MESSAGE("left out: " << (reason)); \
    return;                            \
  } while (false)
