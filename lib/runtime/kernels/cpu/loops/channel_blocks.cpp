#include "runtime/kernels/cpu/loops/channel_blocks.h"

namespace fleetrun::runtime::cpu {
namespace {

// The descriptor of a [N, C, H, W] tensor of these blocks, laid out like one of the same N.
Descriptor blocked(const Shape& shape, const Descriptor& like, std::int64_t inner) {
  Descriptor made = like;
  for (int i = 1; i < 4; ++i) {
    made.dims[i] = shape[static_cast<std::size_t>(i)];
    made.padded_dims[i] = shape[static_cast<std::size_t>(i)];
  }
  const std::int64_t channels = (shape[1] + inner - 1) / inner * inner;
  made.padded_dims[1] = channels;
  dnnl_dims_t& strides = made.format_desc.blocking.strides;
  strides[3] = inner;
  strides[2] = strides[3] * shape[3];
  const bool channels_last = made.format_desc.blocking.inner_nblks == 0 && inner > 1;
  strides[1] = channels_last ? 1 : strides[2] * shape[2];
  strides[0] = channels_last ? strides[2] * shape[2] : strides[1] * (channels / inner);
  return made;
}

}  // namespace

std::optional<ChannelBlocks> channel_blocks(const Value& image) {
  if (image.shape.size() != 4) return std::nullopt;
  if (image.layout.plain()) return ChannelBlocks{image.shape[0] * image.shape[1], 1};
  const Descriptor descriptor = descriptor_of(image);
  const dnnl_blocking_desc_t& blocks = descriptor.format_desc.blocking;
  if (descriptor.ndims != 4 || blocks.inner_nblks > 1 ||
      (blocks.inner_nblks == 1 && blocks.inner_idxs[0] != 1))
    return std::nullopt;
  const std::int64_t inner = blocks.inner_nblks == 1 ? blocks.inner_blks[0] : image.shape[1];
  if (layout_of(blocked(image.shape, descriptor, inner), kActivation) != image.layout) return std::nullopt;
  return ChannelBlocks{image.shape[0] * (descriptor.padded_dims[1] / inner), inner};
}

Layout resized_layout(const Value& image, const Shape& shape) {
  if (image.layout.plain()) return {};
  return layout_of(blocked(shape, descriptor_of(image), channel_blocks(image)->inner), kActivation);
}

std::optional<Layout> layout_of_channels(const Value& image, std::int64_t channels) {
  const std::optional<ChannelBlocks> blocks = channel_blocks(image);
  if (!blocks || image.layout.plain()) return std::nullopt;
  const Descriptor descriptor = descriptor_of(image);
  const bool whole = image.shape[1] % blocks->inner == 0 && channels % blocks->inner == 0;
  if (descriptor.format_desc.blocking.inner_nblks == 0 || !whole) return std::nullopt;
  Shape shape = image.shape;
  shape[1] = channels;
  return layout_of(blocked(shape, descriptor, blocks->inner), kActivation);
}

}  // namespace fleetrun::runtime::cpu
