// Between our values and oneDNN's memory descriptors.
#pragma once
#include <dnnl_types.h>

#include <string_view>

#include "runtime/graph/program.h"

namespace fleetrun::runtime::cpu {

using Descriptor = dnnl_memory_desc_t;

// Throws Error(internal) with what was being done and oneDNN's status, unless that is success.
void check(dnnl_status_t status, std::string_view doing);

Descriptor row_major(const Shape& shape, DType dtype);
Descriptor any_layout(const Shape& shape, DType dtype);     // oneDNN chooses
Descriptor channels_last(const Shape& shape, DType dtype);  // of an image [N, C, H, W]: nhwc

// How the value lies in memory. `view`: its dims where the value is plain (a [O, C, kh, kw] weight of groups
// seen as [groups, O/groups, C, kh, kw]); other layouts carry their own dims.
Descriptor descriptor_of(const Value& value);
Descriptor descriptor_of(const Value& value, const Shape& view);

// `letters` names the dims in words: "nchw" gives nChw16c. Row-major is the plain layout.
Layout layout_of(const Descriptor& descriptor, std::string_view letters);

// The layout of the value with elements of another type.
Layout layout_in(const Value& value, DType dtype);

constexpr std::string_view kActivation = "nchw";
std::string_view letters_of_weights(int dims);  // oi, oihw, goihw

}  // namespace fleetrun::runtime::cpu
