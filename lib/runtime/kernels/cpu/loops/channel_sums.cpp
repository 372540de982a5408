#include "runtime/kernels/cpu/loops/channel_sums.h"

#include <algorithm>
#include <array>

namespace fleetrun::runtime::cpu {
namespace {

// The moments of one channel whose values lie in rows.
class OneChannel {
 public:
  void add(const void* x, const Rows& rows) {
    LaneSums mean, squares;
    moments_of(x, rows, mean.data(), squares.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows.lanes); ++i)
      pieces_[size_++] = {static_cast<double>(rows.count), mean[i], squares[i]};
  }
  double mean() const {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      sum += pieces_[i].count * pieces_[i].mean;
      count += pieces_[i].count;
    }
    return sum / count;
  }
  double squares(double mean) const {
    double sum = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const double apart = pieces_[i].mean - mean;
      sum += pieces_[i].squares + pieces_[i].count * apart * apart;
    }
    return sum;
  }

 private:
  struct Piece {
    double count = 0, mean = 0, squares = 0;
  };
  std::array<Piece, 2 * kLanes> pieces_;
  std::size_t size_ = 0;
};

}  // namespace

void image_moments(const ChannelUnits& units, const ChannelPart& part, const ChannelArrays& arrays,
                   const RunContext& context, ValueId x) {
  void* const scratch = context.scratch;
  units.each(part, [&](std::int64_t unit) {
    double* const mean = arrays.sums(scratch, 0, units.strip_of(unit)) + units.channel_of(unit);
    double* const squares = arrays.sums(scratch, 1, units.strip_of(unit)) + units.channel_of(unit);
    OneChannel channel;
    units.rows(unit, [&](std::int64_t offset, const Rows& rows) {
      if (units.one_channel()) return channel.add(units.at(context, x, offset), rows);
      moments_of(units.at(context, x, offset), rows, mean, squares);
    });
    if (!units.one_channel()) return;
    *mean = channel.mean();
    *squares = channel.squares(*mean);
  });
}

void total_moments(const ChannelUnits& units, const ChannelPart& part, const ChannelArrays& arrays,
                   void* scratch) {
  const std::int64_t first = units.first_channel(part), last = units.last_channel(part);
  double* const mean = arrays.totals(scratch, 0);
  double* const squares = arrays.totals(scratch, 1);
  const auto pixels = static_cast<double>(units.pixels());
  std::fill(mean + first, mean + last, 0.0);
  std::fill(squares + first, squares + last, 0.0);
  for (std::int64_t strip = 0; strip < units.strips(); ++strip) {
    const double* const of_strip = arrays.sums(scratch, 0, strip);
    const double share = static_cast<double>(units.pixels_of(strip)) / pixels;  // of its image
    for (std::int64_t c = first; c < last; ++c) mean[c] += of_strip[c] * share;
  }
  for (std::int64_t c = first; c < last; ++c) mean[c] /= static_cast<double>(units.images());
  for (std::int64_t strip = 0; strip < units.strips(); ++strip) {
    const double* const part_mean = arrays.sums(scratch, 0, strip);
    const double* const part_squares = arrays.sums(scratch, 1, strip);
    const auto count = static_cast<double>(units.pixels_of(strip));
    for (std::int64_t c = first; c < last; ++c) {
      const double apart = part_mean[c] - mean[c];
      squares[c] += part_squares[c] + count * apart * apart;
    }
  }
}

void total_sums(const ChannelUnits& units, const ChannelPart& part, const ChannelArrays& arrays,
                void* scratch) {
  const std::int64_t first = units.first_channel(part), last = units.last_channel(part);
  for (const int which : {0, 1}) {
    double* const total = arrays.totals(scratch, which);
    std::fill(total + first, total + last, 0.0);
    for (std::int64_t strip = 0; strip < units.strips(); ++strip) {
      const double* const of_strip = arrays.sums(scratch, which, strip);
      for (std::int64_t c = first; c < last; ++c) total[c] += of_strip[c];
    }
  }
}

}  // namespace fleetrun::runtime::cpu
