// Which vector instructions oneDNN may use. Layouts and roundings depend on it, so ranks on unlike
// processors settle on what all of them have before anything is planned.
#pragma once
#include <string>

#include "base/number/vector_level.h"

namespace fleetrun::runtime {

// What this processor has, as oneDNN's bit mask (dnnl_cpu_isa_t): the common part of two is their bitwise
// and. Once it was asked, oneDNN cannot be held to less.
unsigned instruction_sets();

// The same, asked in a child process. Throws Error(os).
unsigned instruction_sets_of_child();

// What the mask depends on, as a text of 16 characters: two processors have the same sets when it is equal. Does not ask oneDNN.
std::string processor_features();

// The level at which our own loops use no more than these.
VectorLevel vector_level_of(unsigned sets);

// Holds oneDNN and our own loops to the best set within `common`, and returns its name. Throws Error(internal) when oneDNN is in use
// already.
std::string limit_instruction_sets(unsigned common);

}  // namespace fleetrun::runtime
