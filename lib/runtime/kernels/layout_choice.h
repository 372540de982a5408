// Choices of layouts that many ops share.
#pragma once
#include <string_view>

#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime {

// Every argument lies as the input `leader` does; those of another shape (scalars, labels) stay plain.
LayoutChoice like_input(const LayoutQuery& query, std::string_view leader);
LayoutChoice like_first_input(const LayoutQuery& query, Device&);

// Every argument lies as it does already: for ops over lists that look at each element by itself. States and gradients
// lie like their parameters anyhow.
LayoutChoice as_they_lie(const LayoutQuery& query, Device&);

}  // namespace fleetrun::runtime
