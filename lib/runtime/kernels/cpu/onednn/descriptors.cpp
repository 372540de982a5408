#include "runtime/kernels/cpu/onednn/descriptors.h"

#include <dnnl.h>
#include <dnnl_debug.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime::cpu {
namespace {

dnnl_data_type_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return dnnl_f32;
    case DType::f16:
      return dnnl_f16;
    case DType::bf16:
      return dnnl_bf16;
    case DType::i32:
      return dnnl_s32;
    case DType::u8:
      return dnnl_u8;
    default:
      throw Error(ErrorKind::internal, fmt::format("oneDNN has no type {}", describe(dtype)));
  }
}

Descriptor with_strides(const Shape& shape, DType dtype, const dnnl_dims_t strides) {
  if (shape.size() > DNNL_MAX_NDIMS)
    throw Error(ErrorKind::internal, fmt::format("oneDNN has no tensors like {}", describe(shape)));
  Descriptor descriptor;
  std::memset(&descriptor, 0, sizeof descriptor);
  check(dnnl_memory_desc_init_by_strides(&descriptor, static_cast<int>(shape.size()), shape.data(),
                                         type_of(dtype), strides),
        "describing a tensor " + describe(shape));
  return descriptor;
}

// The same description with every byte that means nothing zeroed, so that bytes can be compared.
Descriptor canonical(const Descriptor& from) {
  if (from.format_kind != dnnl_blocked)
    throw Error(ErrorKind::internal, "oneDNN chose a layout that is not blocked");
  Descriptor to;
  std::memset(&to, 0, sizeof to);
  const auto copy = [](dnnl_dims_t& target, const dnnl_dims_t& source, int count) {
    std::copy_n(source, count, target);
  };
  to.ndims = from.ndims;
  to.data_type = from.data_type;
  to.offset0 = from.offset0;
  to.format_kind = from.format_kind;
  to.extra.flags = from.extra.flags;
  copy(to.dims, from.dims, from.ndims);
  copy(to.padded_dims, from.padded_dims, from.ndims);
  copy(to.padded_offsets, from.padded_offsets, from.ndims);
  const dnnl_blocking_desc_t& blocks = from.format_desc.blocking;
  to.format_desc.blocking.inner_nblks = blocks.inner_nblks;
  copy(to.format_desc.blocking.strides, blocks.strides, from.ndims);
  copy(to.format_desc.blocking.inner_blks, blocks.inner_blks, blocks.inner_nblks);
  copy(to.format_desc.blocking.inner_idxs, blocks.inner_idxs, blocks.inner_nblks);
  return to;
}

bool is_row_major(const Descriptor& descriptor) {
  if (descriptor.format_desc.blocking.inner_nblks != 0 || descriptor.offset0 != 0) return false;
  std::int64_t stride = 1;
  for (int i = descriptor.ndims - 1; i >= 0; --i) {
    if (descriptor.format_desc.blocking.strides[i] != stride) return false;
    stride *= descriptor.dims[i];
  }
  return true;
}

// Dims from the outermost to the innermost, blocked ones in capitals, then the blocks.
std::string name_of(const Descriptor& descriptor, std::string_view letters) {
  const dnnl_blocking_desc_t& blocks = descriptor.format_desc.blocking;
  std::array<int, DNNL_MAX_NDIMS> order{};
  const auto end = order.begin() + descriptor.ndims;
  for (int i = 0; i < descriptor.ndims; ++i) order[static_cast<std::size_t>(i)] = i;
  std::stable_sort(order.begin(), end, [&](int a, int b) { return blocks.strides[a] > blocks.strides[b]; });
  std::string name;
  for (auto dim = order.begin(); dim != end; ++dim) {
    const bool blocked = std::find(blocks.inner_idxs, blocks.inner_idxs + blocks.inner_nblks, *dim) !=
                         blocks.inner_idxs + blocks.inner_nblks;
    const char letter = letters.at(static_cast<std::size_t>(*dim));
    name += blocked ? static_cast<char>(std::toupper(letter)) : letter;
  }
  for (int i = 0; i < blocks.inner_nblks; ++i)
    name +=
        fmt::format("{}{}", blocks.inner_blks[i], letters.at(static_cast<std::size_t>(blocks.inner_idxs[i])));
  return name;
}

}  // namespace

void check(dnnl_status_t status, std::string_view doing) {
  if (status != dnnl_success)
    throw Error(ErrorKind::internal, fmt::format("oneDNN, {}: {}", doing, dnnl_status2str(status)));
}

Descriptor row_major(const Shape& shape, DType dtype) {
  dnnl_dims_t strides = {};
  std::int64_t stride = 1;
  for (std::size_t i = std::min<std::size_t>(shape.size(), DNNL_MAX_NDIMS); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return with_strides(shape, dtype, strides);
}

Descriptor any_layout(const Shape& shape, DType dtype) {
  Descriptor descriptor;
  std::memset(&descriptor, 0, sizeof descriptor);
  check(dnnl_memory_desc_init_by_tag(&descriptor, static_cast<int>(shape.size()), shape.data(),
                                     type_of(dtype), dnnl_format_tag_any),
        "describing a tensor " + describe(shape));
  return descriptor;
}

Descriptor channels_last(const Shape& shape, DType dtype) {
  const dnnl_dims_t strides = {shape[1] * shape[2] * shape[3], 1, shape[1] * shape[3], shape[1]};
  return with_strides(shape, dtype, strides);
}

Descriptor descriptor_of(const Value& value) { return descriptor_of(value, value.shape); }

Descriptor descriptor_of(const Value& value, const Shape& view) {
  if (value.layout.plain()) return row_major(view, value.dtype);
  Descriptor descriptor;
  if (value.layout.descriptor.size() != sizeof descriptor)
    throw Error(ErrorKind::internal,
                fmt::format("{}: layout {} is not one of oneDNN", value.name, value.layout.name));
  std::memcpy(&descriptor, value.layout.descriptor.data(), sizeof descriptor);
  return descriptor;
}

Layout layout_of(const Descriptor& descriptor, std::string_view letters) {
  const Descriptor exact = canonical(descriptor);
  if (is_row_major(exact)) return {};
  return {.name = name_of(exact, letters),
          .descriptor = std::string(reinterpret_cast<const char*>(&exact), sizeof exact),
          .bytes = dnnl_memory_desc_get_size(&exact)};
}

Layout layout_in(const Value& value, DType dtype) {
  if (value.layout.plain() || value.dtype == dtype) return value.layout;
  Descriptor descriptor = descriptor_of(value);
  descriptor.data_type = type_of(dtype);
  return {.name = value.layout.name,
          .descriptor = std::string(reinterpret_cast<const char*>(&descriptor), sizeof descriptor),
          .bytes = dnnl_memory_desc_get_size(&descriptor)};
}

std::string_view letters_of_weights(int dims) {
  switch (dims) {
    case 2:
      return "oi";
    case 4:
      return "oihw";
    case 5:
      return "goihw";
    default:
      throw Error(ErrorKind::internal, fmt::format("there are no weights of {} dims", dims));
  }
}

}  // namespace fleetrun::runtime::cpu
