#include "runtime/ops/rules/window.h"

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::runtime::ops {
namespace {

std::array<std::int64_t, 2> read_pair(const OpView& op, const std::string& name) {
  const std::vector<std::int64_t>& list = op.integers(name);
  if (list.size() != 2 || std::min(list[0], list[1]) < 1)
    op.fail(fmt::format("{} is {}, wanted two numbers of 1 or more", name, describe(list)));
  return {list[0], list[1]};
}

}  // namespace

Window read_window(const OpView& op, std::int64_t kernel_rows, std::int64_t kernel_columns) {
  Window window = {.kernel = {kernel_rows, kernel_columns}, .strides = read_pair(op, "strides")};
  if (op.op().attributes.count("dilations") != 0) window.dilations = read_pair(op, "dilations");
  const std::vector<std::int64_t>& paddings = op.integers("paddings");
  if ((paddings.size() != 2 && paddings.size() != 4) ||
      *std::min_element(paddings.begin(), paddings.end()) < 0)
    op.fail(fmt::format("paddings is {}, wanted two or four numbers of 0 or more", describe(paddings)));
  const bool four = paddings.size() == 4;
  window.before = {paddings[0], four ? paddings[2] : paddings[1]};
  window.after = {four ? paddings[1] : paddings[0], four ? paddings[3] : paddings[1]};
  return window;
}

Shape moved_over(const OpView& op, const Window& window, const Shape& image, std::int64_t channels) {
  Shape made = {image[0], channels, 0, 0};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t padded = image[axis + 2] + window.before[axis] + window.after[axis];
    if (padded < window.reach(axis))
      op.fail(fmt::format("a window of {} does not fit into {} padded {} of x {}", window.reach(axis), padded,
                          axis == 0 ? "rows" : "columns", describe(image)));
    made[axis + 2] = (padded - window.reach(axis)) / window.strides[axis] + 1;
  }
  return made;
}

}  // namespace fleetrun::runtime::ops
