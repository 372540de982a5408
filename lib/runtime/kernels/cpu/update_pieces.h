// What the optimizers share: one op updates a list of parameters, each with its gradient and states. The elements of
// all of them are cut into equal pieces for the threads of the team, wherever one parameter ends.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {

// The parameters of one op; of each, its arrays in the order of `arguments`.
template <std::size_t arrays>
class UpdatePieces {
 public:
  UpdatePieces(const OpView& op, const std::array<std::string_view, arrays>& arguments)
      : pieces_(op.input_ids(arguments.front()).size()) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      for (std::size_t k = 0; k < arrays; ++k) pieces_[i].ids[k] = op.input_ids(arguments[k])[i];
      pieces_[i].begin = elements_;
      elements_ += elements_of(op, op.program().value(pieces_[i].ids.front()));
    }
  }

  // body(piece, pointers, begin, end) for ranges of elements of the piece-th parameter that together cover all.
  template <typename Body>
  void parallel(const RunContext& context, Body&& body) const {
    parallel_for(elements_, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      for (std::size_t i = first_behind(begin); i < pieces_.size() && pieces_[i].begin < end; ++i) {
        std::array<float*, arrays> pointers;
        for (std::size_t k = 0; k < arrays; ++k) pointers[k] = at(context, pieces_[i].ids[k]);
        const std::int64_t start = pieces_[i].begin;
        body(i, pointers, std::max(begin, start) - start, std::min(end, end_of(i)) - start);
      }
    });
  }

  std::size_t size() const { return pieces_.size(); }

 private:
  struct Piece {
    std::array<ValueId, arrays> ids;
    std::int64_t begin = 0;  // of its elements among those of all
  };

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
  std::int64_t elements_ = 0;
};

}  // namespace fleetrun::runtime::cpu
