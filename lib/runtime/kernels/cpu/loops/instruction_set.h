// Which vector instructions oneDNN may use. Layouts and roundings depend on it, so ranks on unlike
// processors settle on what all of them have before anything is planned.
#pragma once
#include "base/number/vector_level.h"

namespace fleetrun::runtime {

// What this processor has, as oneDNN's bit mask (dnnl_cpu_isa_t): the common part of two is their bitwise
// and.
unsigned instruction_sets();

// The level at which our own loops use no more than these.
VectorLevel vector_level_of(unsigned sets);

// Holds oneDNN and our own loops to the best set within `common`. Before any primitive is made; a limit equal to what the
// processor has changes nothing. Throws Error(internal) when oneDNN is in use already.
void limit_instruction_sets(unsigned common);

}  // namespace fleetrun::runtime
