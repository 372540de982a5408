// Images as [outer, rows, columns, inner]: what plain, nhwc and nChw16c have in common, so that one loop
// serves all. Inner elements are neighbouring channels, treated alike.
#pragma once
#include <cstdint>
#include <optional>

#include "runtime/kernels/cpu/onednn/descriptors.h"

namespace fleetrun::runtime::cpu {

struct ChannelBlocks {
  std::int64_t outer = 0;  // images times blocks of channels, padding included
  std::int64_t inner = 1;  // channels side by side: 1 plain, C nhwc, 16 nChw16c
};

// Empty when the layout is of another kind.
std::optional<ChannelBlocks> channel_blocks(const Value& image);

// The layout of `image` for a tensor with the same images and channels but other rows and columns.
Layout resized_layout(const Value& image, const Shape& shape);

// The layout of `image` for a tensor that differs in the number of channels. Empty unless both are whole blocks.
std::optional<Layout> layout_of_channels(const Value& image, std::int64_t channels);

}  // namespace fleetrun::runtime::cpu
