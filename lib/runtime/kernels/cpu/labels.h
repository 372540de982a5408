// Class numbers that come with a batch: data from outside, checked before they index anything.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::cpu {

struct Labels {
  std::string op;
  std::int64_t rows;
  std::int64_t classes;

  Labels(const OpView& view, const Shape& scores)
      : op(view.def().name), rows(scores[0]), classes(scores[1]) {}

  // Throws Error(data) that names the sample whose label is `classes` or more.
  void check(const std::int32_t* labels) const;
};

}  // namespace fleetrun::runtime::cpu
