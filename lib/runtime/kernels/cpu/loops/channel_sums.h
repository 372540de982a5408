// The sums over an image that batch normalisation needs, of each strip and channel first and of each channel then: put
// together in f64 in the order of the strips, so that they do not depend on the number of threads or on the parts.
#pragma once
#include "runtime/kernels/cpu/loops/channel_units.h"

namespace fleetrun::runtime::cpu {

// Of each strip and channel: mean (0) and sum of squared distances from it (1).
void image_moments(const ChannelUnits& units, const ChannelPart& part, const ChannelArrays& arrays,
                   const RunContext& context, ValueId x);

// Of each channel over all strips, from those of each strip: mean (0) and sum of squared distances (1).
void total_moments(const ChannelUnits& units, const ChannelPart& part, const ChannelArrays& arrays,
                   void* scratch);

// Of each strip and channel: dy (0) and dy * (x - mean) (1), by of_rows(unit, offset, rows, sums of the rows).
template <typename OfRows>
void image_sums(const ChannelUnits& units, const ChannelPart& part, const ChannelArrays& arrays,
                void* scratch, OfRows&& of_rows) {
  units.each(part, [&](std::int64_t unit) {
    double* const dy = arrays.sums(scratch, 0, units.strip_of(unit)) + units.channel_of(unit);
    double* const dy_x = arrays.sums(scratch, 1, units.strip_of(unit)) + units.channel_of(unit);
    if (units.one_channel()) *dy = *dy_x = 0;
    units.rows(unit, [&](std::int64_t offset, const Rows& rows) {
      if (!units.one_channel()) return of_rows(unit, offset, rows, GradientSums{dy, dy_x});
      LaneSums of_dy, of_dy_x;
      of_rows(unit, offset, rows, GradientSums{of_dy.data(), of_dy_x.data()});
      for (std::size_t i = 0; i < static_cast<std::size_t>(rows.lanes); ++i) {
        *dy += of_dy[i];
        *dy_x += of_dy_x[i];
      }
    });
  });
}

// Of each channel over all strips, from those of each strip: both sums.
void total_sums(const ChannelUnits& units, const ChannelPart& part, const ChannelArrays& arrays,
                void* scratch);

}  // namespace fleetrun::runtime::cpu
