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

// For casts: y lies as x does. If x is a parameter that nobody has laid out yet, x lies as the reader of y wants that.
// `layout_in` is the device's layout of a value if the value had another type.
LayoutChoice as_casts_lie(const LayoutQuery& query, Device& device, Layout (*layout_in)(const Value&, DType));

// For cast_gradient: each gradient lies like its parameter. `layout_in` as above.
LayoutChoice as_parameters_lie(const LayoutQuery& query, Layout (*layout_in)(const Value&, DType));

}  // namespace fleetrun::runtime
