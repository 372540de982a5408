// What the optimizers share: one op updates a list of parameters, each with its gradient and states. The elements of
// all of them are cut into equal pieces for the threads of the team, wherever one parameter ends. Sums are made in blocks that do
// not depend on the team, so that ranks with other numbers of threads get the same bits.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {

constexpr std::int64_t kSumBlock = kElementsPerThread;  // elements that one thread adds up in order

struct TwoSums {
  double first = 0, second = 0;
};

// The sum of squares of doubles made of floats: each square is exact, and the order of the sum is fixed.
FLEETRUN_VECTOR_LOOP double squares_of(const float* x, std::int64_t count) {
  constexpr int kSums = 8;
  double sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (int lane = 0; lane < kSums; ++lane) {
      const double value = x[i + lane];
      sums[lane] += value * value;
    }
  for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0;
  for (const double one : sums) sum += one;
  return sum;
}

// The parameters of one op; of each, its arrays in the order of `arguments`.
template <std::size_t arrays>
class UpdatePieces {
 public:
  UpdatePieces(const OpView& op, const std::array<std::string_view, arrays>& arguments)
      : pieces_(op.input_ids(arguments.front()).size()) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      for (std::size_t k = 0; k < arrays; ++k) pieces_[i].ids[k] = op.input_ids(arguments[k])[i];
      pieces_[i].begin = elements_;
      pieces_[i].first_block = blocks_;
      const std::int64_t elements = elements_of(op, op.program().value(pieces_[i].ids.front()));
      elements_ += elements;
      blocks_ += (elements + kSumBlock - 1) / kSumBlock;
    }
  }

  // body(piece, pointers, begin, end) for ranges of elements of the piece-th parameter that together cover all.
  template <typename Body>
  void parallel(const RunContext& context, Body&& body) const {
    parallel_for(elements_, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      for (std::size_t i = first_behind(begin); i < pieces_.size() && pieces_[i].begin < end; ++i) {
        const std::int64_t start = pieces_[i].begin;
        body(i, pointers_of(context, i), std::max(begin, start) - start, std::min(end, end_of(i)) - start);
      }
    });
  }

  // Adds up body(piece, pointers, begin, end), two sums over a range of elements, for each parameter, in scratch memory of
  // scratch_bytes(); sums_of() then has them.
  template <typename Body>
  void sum(const RunContext& context, Body&& body) const {
    auto* const sums = static_cast<TwoSums*>(context.scratch);
    parallel_for(blocks_, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t block = first; block < last; ++block) {
        const std::size_t i = piece_of_block(block);
        const std::int64_t start = (block - pieces_[i].first_block) * kSumBlock;
        sums[block] = body(i, pointers_of(context, i), start,
                           std::min(start + kSumBlock, end_of(i) - pieces_[i].begin));
      }
    });
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      TwoSums& all = sums[pieces_[i].first_block];
      for (std::int64_t block = pieces_[i].first_block + 1; block < end_block_of(i); ++block)
        all = {all.first + sums[block].first, all.second + sums[block].second};
    }
  }
  const TwoSums& sums_of(const RunContext& context, std::size_t i) const {
    return static_cast<const TwoSums*>(context.scratch)[pieces_[i].first_block];
  }
  std::size_t scratch_bytes() const { return static_cast<std::size_t>(blocks_) * sizeof(TwoSums); }

  std::size_t size() const { return pieces_.size(); }

 private:
  struct Piece {
    std::array<ValueId, arrays> ids;
    std::int64_t begin = 0;        // of its elements among those of all
    std::int64_t first_block = 0;  // of its blocks among those of all
  };

  std::array<float*, arrays> pointers_of(const RunContext& context, std::size_t i) const {
    std::array<float*, arrays> pointers;
    for (std::size_t k = 0; k < arrays; ++k) pointers[k] = at(context, pieces_[i].ids[k]);
    return pointers;
  }

  std::int64_t end_block_of(std::size_t i) const {
    return i + 1 < pieces_.size() ? pieces_[i + 1].first_block : blocks_;
  }

  std::size_t piece_of_block(std::int64_t block) const {
    const auto after =
        std::upper_bound(pieces_.begin(), pieces_.end(), block,
                         [](std::int64_t b, const Piece& piece) { return b < piece.first_block; });
    return static_cast<std::size_t>(after - pieces_.begin()) - 1;
  }

  std::int64_t end_of(std::size_t i) const {
    return i + 1 < pieces_.size() ? pieces_[i + 1].begin : elements_;
  }

  // The piece in which an element lies.
  std::size_t first_behind(std::int64_t element) const {
    const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), element,
                                        [](std::int64_t e, const Piece& piece) { return e < piece.begin; });
    return static_cast<std::size_t>(after - pieces_.begin()) - 1;
  }

  std::vector<Piece> pieces_;
  std::int64_t elements_ = 0, blocks_ = 0;
};

// A kernel made of one function of the run, with scratch memory.
template <typename Run>
class ScratchKernel : public Kernel {
 public:
  ScratchKernel(std::size_t bytes, Run run) : bytes_(bytes), run_(std::move(run)) {}
  void run(const RunContext& context) override { run_(context); }
  std::size_t scratch_bytes() const override { return bytes_; }

 private:
  std::size_t bytes_;
  Run run_;
};

template <typename Run>
std::unique_ptr<Kernel> scratch_kernel(std::size_t bytes, Run run) {
  return std::make_unique<ScratchKernel<Run>>(bytes, std::move(run));
}

}  // namespace fleetrun::runtime::cpu
