// A case, or the rest of one, that this machine cannot show. It says what it left out and why; scripts/test counts these lines.
#pragma once
#include <doctest/doctest.h>

#include <string>

// doctest prints a `const char*` as a pointer, so the reason becomes a string.
#define LEAVE_OUT(reason)                         \
  do {                                            \
    MESSAGE("left out: " << std::string(reason)); \
    return;                                       \
  } while (false)
