// Depthwise convolutions of a rectified image, in layouts with 16 or 8 channels side by side. Rows of the image are
// rectified, or those of dy copied, into a few rows of scratch memory that has its padding, from where each is read as
// often as the window has taps. Sums are made in the order of the taps; those of dw over some dozens of pixels in f32 and
// in f64 above that, piece by piece of an image: nothing depends on the number of threads.
#include <dnnl.h>

#include <algorithm>
#include <array>

#include "runtime/kernels/cpu/depthwise.h"
#include "runtime/kernels/cpu/loops/channel_blocks.h"
#include "runtime/kernels/cpu/loops/depthwise_rows.h"
#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::int64_t kMostChannels = 16;  // side by side

// Where the input's columns start in the buffer, and which the windows of a row see.
DepthwiseRows::Size forward_buffer(const Depthwise& of) {
  const std::int64_t seen = (of.columns.out - 1) * of.columns.stride + of.columns.reach();
  return {.slots = of.rows.reach(),
          .before = of.columns.before,
          .columns = of.columns.in,
          .width = std::max(seen, of.columns.before + of.columns.in),
          .together = of.together};
}

std::int64_t rows_per_thread(std::int64_t columns, std::int64_t together) {
  return kElementsPerThread / std::max<std::int64_t>(1, columns * together);
}

class Forward : public Kernel {
 public:
  explicit Forward(const OpView& op)
      : of_(op, op.input("x"), op.output("y").shape, op.input("w").shape),
        buffer_(forward_buffer(of_)),
        memory_{buffer_.floats(), of_.taps()},
        scratch_bytes_(memory_.bytes_of_team()),
        x_(op.input_id("x")),
        w_(op.input_id("w")),
        b_(op.input_id("b")),
        y_(op.output_id("y")) {}

  std::size_t scratch_bytes() const override { return scratch_bytes_; }

  void run(const RunContext& context) override {
    parallel_for(of_.planes() * of_.rows.out, rows_per_thread(of_.columns.out, of_.together),
                 [&](std::int64_t begin, std::int64_t end) { rows(context, begin, end); });
  }

 private:
  void rows(const RunContext& context, std::int64_t begin, std::int64_t end) const {
    DepthwiseRows input(buffer_, true, memory_.rows(context.scratch));
    const float** const taps = memory_.pointers(context.scratch);
    TapSum sum = {
        .taps = taps, .weights = taps + of_.taps(), .pixels = of_.columns.out, .in_step = of_.columns.stride};
    std::array<float, kMostChannels> bias{};
    if (b_ != kNone) sum.start = bias.data();
    std::int64_t plane = -1;
    for (std::int64_t at_row = begin; at_row < end; ++at_row) {
      const std::int64_t row = at_row % of_.rows.out;
      if (plane != at_row / of_.rows.out) {
        plane = at_row / of_.rows.out;
        input.begin(at(context, x_) + plane * of_.in_plane());
        if (b_ != kNone) read_bias(at(context, b_), plane, bias);
      }
      sum.count = find_taps(at(context, w_), plane, row, input, taps);
      sum.out = at(context, y_) + at_row * of_.columns.out * of_.together;
      sum_taps(static_cast<int>(of_.together), sum);
    }
  }

  int find_taps(const float* w, std::int64_t plane, std::int64_t row, DepthwiseRows& input,
                const float** taps) const {
    const DepthwiseAxis &rows = of_.rows, &columns = of_.columns;
    int count = 0;
    const std::int64_t first = row * rows.stride - rows.before;
    input.skip_to(first);
    for (std::int64_t r = 0; r < rows.kernel; ++r) {
      const std::int64_t in = first + r * rows.dilation;
      if (in < 0 || in >= rows.in) continue;
      const float* const pixels = input.row(in);
      for (std::int64_t c = 0; c < columns.kernel; ++c, ++count) {
        taps[count] = pixels + c * columns.dilation * of_.together;
        taps[of_.taps() + count] = of_.weight(w, plane, r, c);
      }
    }
    return count;
  }

  void read_bias(const float* b, std::int64_t plane, std::array<float, kMostChannels>& bias) const {
    const std::int64_t first = plane % of_.blocks() * of_.together;
    bias.fill(0);
    std::copy_n(b + first, std::min(of_.together, of_.channels - first), bias.begin());
  }

  Depthwise of_;
  DepthwiseRows::Size buffer_;
  DepthwiseMemory memory_;
  std::size_t scratch_bytes_;
  ValueId x_, w_, b_, y_;
};

// dx, column by column that is a multiple of the stride apart: each such set is a sum over the same taps of dy.
class GradInput : public Kernel {
 public:
  explicit GradInput(const OpView& op)
      : of_(op, op.input("x"), op.input("dy").shape, op.input("w").shape),
        buffer_(buffer_of_dy()),
        memory_{buffer_.floats(), of_.taps()},
        scratch_bytes_(memory_.bytes_of_team()),
        dy_(op.input_id("dy")),
        w_(op.input_id("w")),
        x_(op.input_id("x")),
        dx_(op.output_id("dx")) {}

  std::size_t scratch_bytes() const override { return scratch_bytes_; }

  void run(const RunContext& context) override {
    parallel_for(of_.planes() * of_.rows.in, rows_per_thread(of_.columns.in, of_.together),
                 [&](std::int64_t begin, std::int64_t end) { rows(context, begin, end); });
  }

 private:
  // Zeros in front of dy's columns and after them, where windows of the first and last columns of dx begin and end.
  DepthwiseRows::Size buffer_of_dy() const {
    const DepthwiseAxis& columns = of_.columns;
    const std::int64_t before = columns.reach() / columns.stride + 1;
    const std::int64_t last = (columns.in - 1 + columns.before) / columns.stride;
    return {.slots = of_.rows.reach() / of_.rows.stride + 1,
            .before = before,
            .columns = columns.out,
            .width = before + std::max(columns.out, last + 1),
            .together = of_.together};
  }

  void rows(const RunContext& context, std::int64_t begin, std::int64_t end) const {
    DepthwiseRows dy(buffer_, false, memory_.rows(context.scratch));
    const float** const taps = memory_.pointers(context.scratch);
    const DepthwiseAxis& columns = of_.columns;
    TapSum sum = {.taps = taps, .weights = taps + of_.taps(), .out_step = columns.stride};
    std::int64_t plane = -1;
    for (std::int64_t at_row = begin; at_row < end; ++at_row) {
      if (plane != at_row / of_.rows.in) {
        plane = at_row / of_.rows.in;
        dy.begin(at(context, dy_) + plane * of_.out_plane());
      }
      const std::int64_t row = at_row % of_.rows.in;
      for (std::int64_t first = 0; first < std::min(columns.stride, columns.in); ++first) {
        const std::int64_t offset = (at_row * columns.in + first) * of_.together;
        sum.count = find_taps(at(context, w_), plane, row, first, dy, taps);
        sum.pixels = (columns.in - first + columns.stride - 1) / columns.stride;
        sum.mask = at(context, x_) + offset;
        sum.out = at(context, dx_) + offset;
        sum_taps(static_cast<int>(of_.together), sum);
      }
    }
  }

  // Of the columns first, first + stride, ... of a row of dx.
  int find_taps(const float* w, std::int64_t plane, std::int64_t row, std::int64_t first, DepthwiseRows& dy,
                const float** taps) const {
    const DepthwiseAxis &rows = of_.rows, &columns = of_.columns;
    int count = 0;
    dy.skip_to((row + rows.before - rows.reach()) / rows.stride);
    for (std::int64_t r = rows.kernel - 1; r >= 0; --r) {
      const std::int64_t moved = row + rows.before - r * rows.dilation;
      if (moved < 0 || moved % rows.stride != 0 || moved / rows.stride >= rows.out) continue;
      const float* const pixels = dy.row(moved / rows.stride);
      for (std::int64_t c = 0; c < columns.kernel; ++c) {
        const std::int64_t shift = first + columns.before - c * columns.dilation;
        if (shift % columns.stride != 0) continue;
        taps[count] = pixels + (buffer_.before + shift / columns.stride) * of_.together;
        taps[of_.taps() + count] = of_.weight(w, plane, r, c);
        ++count;
      }
    }
    return count;
  }

  Depthwise of_;
  DepthwiseRows::Size buffer_;
  DepthwiseMemory memory_;
  std::size_t scratch_bytes_;
  ValueId dy_, w_, x_, dx_;
};

// Sums of pieces of some rows of a plane first, then of all pieces in their order.
class GradWeights : public Kernel {
 public:
  explicit GradWeights(const OpView& op)
      : of_(op, op.input("x"), op.input("dy").shape, op.output("dw").shape),
        buffer_(forward_buffer(of_)),
        // Rows, a row of ones (against which dy is summed for db), and sums.
        memory_{buffer_.floats() + buffer_.width * of_.together + sums(), static_cast<int>(taps())},
        pieces_((of_.rows.out + kRowsOfPiece - 1) / kRowsOfPiece),
        team_bytes_(memory_.bytes_of_team()),
        x_(op.input_id("x")),
        dy_(op.input_id("dy")),
        dw_(op.output_id("dw")),
        db_(op.output_id("db")) {}

  std::size_t scratch_bytes() const override {
    return team_bytes_ + static_cast<std::size_t>(of_.planes() * pieces_ * sums()) * sizeof(double);
  }

  void run(const RunContext& context) override {
    const std::int64_t rows_of_thread = rows_per_thread(of_.columns.out, of_.together);
    parallel_for(of_.planes() * pieces_, rows_of_thread / std::min(of_.rows.out, kRowsOfPiece),
                 [&](std::int64_t begin, std::int64_t end) { pieces(context, begin, end); });
    parallel_for(of_.blocks(), kElementsPerThread / (of_.images * pieces_ * sums()),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t block = begin; block < end; ++block) put_together(context, block);
                 });
  }

 private:
  static constexpr std::int64_t kRowsOfPiece = 32;
  static constexpr std::int64_t kPixelsInFloat = 64;  // summed in f32

  std::int64_t taps() const { return of_.taps() + 1; }
  std::int64_t sums() const { return taps() * of_.together; }
  double* sums_of(const RunContext& context, std::int64_t plane, std::int64_t piece) const {
    auto* const all = reinterpret_cast<double*>(static_cast<std::byte*>(context.scratch) + team_bytes_);
    return all + (plane * pieces_ + piece) * sums();
  }

  void pieces(const RunContext& context, std::int64_t begin, std::int64_t end) const {
    float* const rows = memory_.rows(context.scratch);
    DepthwiseRows input(buffer_, true, rows);
    float* const ones = rows + buffer_.floats();
    std::fill_n(ones, buffer_.width * of_.together, 1.0F);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t plane = i / pieces_, first = i % pieces_ * kRowsOfPiece;
      input.begin(at(context, x_) + plane * of_.in_plane());
      double* const total = sums_of(context, plane, i % pieces_);
      std::fill_n(total, sums(), 0.0);
      const std::int64_t last = std::min(of_.rows.out, first + kRowsOfPiece);
      const std::int64_t at_once = std::max<std::int64_t>(1, kPixelsInFloat / of_.columns.out);
      for (std::int64_t row = first; row < last; row += at_once)
        add_rows(context, plane, row, std::min(last, row + at_once), input, ones, total);
    }
  }

  void add_rows(const RunContext& context, std::int64_t plane, std::int64_t row, std::int64_t end,
                DepthwiseRows& input, float* ones, double* total) const {
    float* const partial = ones + buffer_.width * of_.together;
    std::fill_n(partial, sums(), 0.0F);
    for (; row < end; ++row) {
      const float* const dy =
          at(context, dy_) + (plane * of_.rows.out + row) * of_.columns.out * of_.together;
      add_row(context, row, input, ones,
              {.pixels = of_.columns.out, .in_step = of_.columns.stride, .dy = dy, .sums = partial});
    }
    for (std::int64_t i = 0; i < sums(); ++i) total[i] += static_cast<double>(partial[i]);
  }

  // Rows of the window that lie beside the image add nothing: the taps of the others are side by side, for they are
  // neighbours.
  void add_row(const RunContext& context, std::int64_t row, DepthwiseRows& input, const float* ones,
               TapProducts products) const {
    const DepthwiseAxis &rows = of_.rows, &columns = of_.columns;
    const float** const taps = memory_.pointers(context.scratch);
    products.taps = taps;
    const std::int64_t first = row * rows.stride - rows.before;
    float* const sums = products.sums;
    input.skip_to(first);
    int tap = 0;  // of the window
    for (std::int64_t r = 0; r < rows.kernel; ++r) {
      const std::int64_t in = first + r * rows.dilation;
      if (in < 0 || in >= rows.in) {
        tap += static_cast<int>(columns.kernel);
        continue;
      }
      if (products.count == 0) products.sums = sums + tap * of_.together;
      const float* const pixels = input.row(in);
      for (std::int64_t c = 0; c < columns.kernel; ++c, ++tap)
        taps[products.count++] = pixels + c * columns.dilation * of_.together;
    }
    add_tap_products(static_cast<int>(of_.together), products);
    if (db_ == kNone) return;
    products.count = 1;
    products.sums = sums + of_.taps() * of_.together;
    taps[0] = ones;
    add_tap_products(static_cast<int>(of_.together), products);
  }

  void put_together(const RunContext& context, std::int64_t block) const {
    double* const all = sums_of(context, block, 0);
    for (std::int64_t image = 0; image < of_.images; ++image)
      for (std::int64_t piece = image == 0 ? 1 : 0; piece < pieces_; ++piece) {
        const double* const part = sums_of(context, image * of_.blocks() + block, piece);
        for (std::int64_t i = 0; i < sums(); ++i) all[i] += part[i];
      }
    const std::int64_t weights = of_.taps() * of_.together;
    std::transform(all, all + weights, at(context, dw_) + block * weights,
                   [](double sum) { return static_cast<float>(sum); });
    if (db_ == kNone) return;
    const std::int64_t first = block * of_.together;
    std::transform(all + weights, all + weights + std::min(of_.together, of_.channels - first),
                   at(context, db_) + first, [](double sum) { return static_cast<float>(sum); });
  }

  Depthwise of_;
  DepthwiseRows::Size buffer_;
  DepthwiseMemory memory_;
  std::int64_t pieces_;  // of a plane
  std::size_t team_bytes_;
  ValueId x_, dy_, dw_, db_;
};

// ---- layouts

bool is_blocked(const Value& image) {
  const auto blocks = image.layout.plain() ? std::nullopt : channel_blocks(image);
  return blocks && (blocks->inner == 8 || blocks->inner == 16) &&
         descriptor_of(image).format_desc.blocking.inner_nblks == 1;
}

Layout tagged(const Shape& shape, dnnl_format_tag_t tag, std::string_view letters) {
  Descriptor descriptor;
  check(
      dnnl_memory_desc_init_by_tag(&descriptor, static_cast<int>(shape.size()), shape.data(), dnnl_f32, tag),
      "laying out a depthwise convolution");
  return layout_of(descriptor, letters);
}

// As the first of `leaders` that has blocks of channels; of 16 where none has.
struct BlockedLayouts {
  std::int64_t together = kMostChannels;

  BlockedLayouts(std::initializer_list<const Value*> leaders) {
    for (const Value* leader : leaders)
      if (is_blocked(*leader)) {
        together = channel_blocks(*leader)->inner;
        return;
      }
  }
  Layout image(const Shape& shape) const {
    return tagged(shape, together == 8 ? dnnl_nChw8c : dnnl_nChw16c, kActivation);
  }
  Layout weights(const Shape& w) const {
    return tagged({w[0], 1, 1, w[2], w[3]}, together == 8 ? dnnl_Goihw8g : dnnl_Goihw16g,
                  letters_of_weights(5));
  }
};

LayoutChoice choose_forward(const LayoutQuery& query, Device&) {
  const OpView& op = query.op;
  const BlockedLayouts blocked({&op.input("x")});
  return {{blocked.image(op.input("x").shape), blocked.weights(op.input("w").shape), Layout()},
          {blocked.image(op.output("y").shape)}};
}

LayoutChoice choose_grad_input(const LayoutQuery& query, Device&) {
  const OpView& op = query.op;
  const BlockedLayouts blocked({&op.input("x"), &op.input("dy")});
  const Layout x = blocked.image(op.input("x").shape);
  return {{blocked.image(op.input("dy").shape), blocked.weights(op.input("w").shape), x}, {x}};
}

LayoutChoice choose_grad_weights(const LayoutQuery& query, Device&) {
  const OpView& op = query.op;
  const BlockedLayouts blocked({&op.input("x"), &op.input("dy")});
  return {{blocked.image(op.input("x").shape), blocked.image(op.input("dy").shape)},
          {blocked.weights(op.output("dw").shape), Layout()}};
}

}  // namespace

KernelDef relu_depthwise_kernel() { return {.choose_layouts = choose_forward, .make = make_kernel<Forward>}; }
KernelDef relu_depthwise_grad_input_kernel() {
  return {.choose_layouts = choose_grad_input, .make = make_kernel<GradInput>};
}
KernelDef relu_depthwise_grad_weights_kernel() {
  return {.choose_layouts = choose_grad_weights, .make = make_kernel<GradWeights>};
}

}  // namespace fleetrun::runtime::cpu
