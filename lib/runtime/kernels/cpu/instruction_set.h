// Which vector instructions oneDNN may use. Layouts and roundings depend on it, so ranks on unlike
// processors settle on what all of them have before anything is planned.
#pragma once

namespace fleetrun::runtime {

// What this processor has, as oneDNN's bit mask (dnnl_cpu_isa_t): the common part of two is their bitwise
// and.
unsigned instruction_sets();

// Holds oneDNN to the best set within `common`. Before any primitive is made; a limit equal to what the
// processor has changes nothing. Throws Error(internal) when oneDNN is in use already.
void limit_instruction_sets(unsigned common);

}  // namespace fleetrun::runtime
