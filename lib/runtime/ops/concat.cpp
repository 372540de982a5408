// Two tensors one after the other along an axis. Arguments of ops have names, so this takes two; whoever has
// more joins what it has to the next.
//   joined[.., i, ..] = x[.., i, ..] for i < X, y[.., i - X, ..] after      along axis, X = size of x there
//   x, y f32 alike in all other sizes;  joined with both sizes added
//   attributes: axis, from 0
//   concat_grad(djoined; axis, split = X): dx is the part before split, dy the part from it on
// Throws Error(config) when x and y do not fit each other or the axis is none of theirs.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

// Throws Error(config) unless `shape` has that axis.
std::size_t read_axis(const OpView& op, const std::string& name, const Shape& shape) {
  const std::int64_t axis = op.integer("axis");
  if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size()))
    op.fail(fmt::format("axis is {}, wanted one of {} {}, counted from 0", axis, name, describe(shape)));
  return static_cast<std::size_t>(axis);
}

void infer_concat(Inference& op) {
  const Value& x = op.input("x");
  const Value& y = op.input("y");
  const std::size_t axis = read_axis(op, "x", x.shape);
  Shape joined = y.shape;
  if (joined.size() == x.shape.size()) joined[axis] = x.shape[axis];
  if (joined != x.shape || x.dtype != y.dtype)
    op.fail(fmt::format("x is {} {}, y is {} {}; they must be alike but for axis {}", describe(x.dtype),
                        describe(x.shape), describe(y.dtype), describe(y.shape), axis));
  joined[axis] += y.shape[axis];
  op.set_output("joined", joined, x.dtype);
}

void grad_concat(GradientRule& rule) {
  const OpView& forward = rule.forward();
  const ValueId djoined = rule.output_gradient("joined");
  if (djoined == kNone) return;
  const std::size_t axis = read_axis(forward, "x", forward.input("x").shape);
  const Attributes attributes = {{"axis", forward.integer("axis")},
                                 {"split", forward.input("x").shape[axis]}};
  const auto ids = rule.emit("concat_grad", {{"djoined", djoined}}, attributes);
  if (rule.wants("x")) rule.set_gradient("x", ids[0]);
  if (rule.wants("y")) rule.set_gradient("y", ids[1]);
}

std::vector<Sample> concat_samples() {
  const auto sample = [](Shape x, Shape y, std::int64_t axis) {
    return Sample{.inputs = {{"x", {std::move(x)}}, {"y", {std::move(y)}}}, .attributes = {{"axis", axis}}};
  };
  return {sample({2, 3, 4, 5}, {2, 7, 4, 5}, 1), sample({2, 3}, {5, 3}, 0), sample({2, 3, 4}, {2, 3, 1}, 2)};
}

void infer_concat_grad(Inference& op) {
  const Value& djoined = op.input("djoined");
  const std::size_t axis = read_axis(op, "djoined", djoined.shape);
  const std::int64_t split = op.integer("split"), whole = djoined.shape[axis];
  if (split < 1 || split >= whole)
    op.fail(
        fmt::format("split is {}, wanted 1 to {} for djoined {}", split, whole - 1, describe(djoined.shape)));
  Shape dx = djoined.shape, dy = djoined.shape;
  dx[axis] = split;
  dy[axis] = whole - split;
  const DType dtype = djoined.dtype;
  op.set_output("dx", dx, dtype);
  op.set_output("dy", dy, dtype);
}

}  // namespace

OpDef concat() {
  return {.inputs = {"x", "y"},
          .outputs = {"joined"},
          .infer = infer_concat,
          .gradient = grad_concat,
          .samples = concat_samples};
}

OpDef concat_grad() { return {.inputs = {"djoined"}, .outputs = {"dx", "dy"}, .infer = infer_concat_grad}; }

}  // namespace fleetrun::runtime::ops
