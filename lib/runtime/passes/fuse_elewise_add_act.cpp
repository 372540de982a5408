// An addition and the relu or scale of its sum become one op. Their relu_grad becomes an op that also does the addition
// before it, which sums the gradients of two readers.
//
//   elementwise_add x y -> s                     elementwise_add_act x y -> out {act="relu"; of="sum"}
//   relu x=s -> out                        =>
//   elementwise_add a b -> out@GRAD              elementwise_add_act_grad y=out dy=a more=b -> s@GRAD
//   relu_grad y=out dy=out@GRAD -> s@GRAD
//
// An addition and the relu or scale of one side become one op, too, when no other op reads that side.
//
//   relu x=y -> r                                elementwise_add_act x y -> out {act="relu"; of="y"}
//   elementwise_add x y=r -> out           =>
//   relu_grad y=r dy=out@GRAD -> y@GRAD          elementwise_add_act_grad y dy=out@GRAD -> y@GRAD
// The results stay the same to the bit.
#include <algorithm>

#include "runtime/passes/passes.h"
#include "runtime/passes/shared/rewrite.h"

namespace fleetrun::runtime {
namespace {

bool is_act(const Op& op) { return op.type == "relu" || op.type == "scale"; }

Attributes attributes_of(const Op& act, const std::string& of) {
  Attributes attributes = act.attributes;
  attributes["act"] = act.type;
  attributes["of"] = of;
  return attributes;
}

bool fuse_act_of_sum(Rewrite& rewrite, OpId act) {
  const OpId add = rewrite.writer_for_one(rewrite.view(act).input_id("x"), "elementwise_add");
  if (add == kNone) return false;
  const OpView addition = rewrite.view(add);
  rewrite.replace(
      {add, act}, act,
      rewrite.make("elementwise_add_act", {{"x", addition.input_id("x")}, {"y", addition.input_id("y")}},
                   {{"out", rewrite.view(act).output_id("y")}},
                   attributes_of(rewrite.program().op(act), "sum"), addition.op().role));
  return true;
}

// The act that makes `side` for the addition and for nobody else but its own gradient; kNone when there is none.
OpId act_of_side(const Rewrite& rewrite, OpId add, ValueId side) {
  const OpId act = rewrite.writer(side);
  if (act == kNone || !rewrite.there(act) || !is_act(rewrite.program().op(act))) return kNone;
  const auto& readers = rewrite.readers(side);
  const bool ours = std::all_of(readers.begin(), readers.end(), [&](OpId reader) {
    if (reader == kNone) return false;
    const Op& op = rewrite.program().op(reader);
    return reader == add || (op.type == "relu_grad" && rewrite.view(reader).input_id("dy") != side);
  });
  return ours && std::count(readers.begin(), readers.end(), add) == 1 ? act : kNone;
}

// Its gradient asks where act(y) is above 0: where y is.
void mask_by(Rewrite& rewrite, ValueId side, ValueId y) {
  for (const OpId reader : rewrite.readers(side))
    if (rewrite.view(reader).op().type == "relu_grad") rewrite.redirect(reader, side, y);
}

bool fuse_act_of_side(Rewrite& rewrite, OpId add) {
  const OpView addition = rewrite.view(add);
  ValueId x = addition.input_id("x"), side = addition.input_id("y");
  if (act_of_side(rewrite, add, side) == kNone) std::swap(x, side);
  const OpId act = act_of_side(rewrite, add, side);
  if (act == kNone) return false;
  const ValueId y = rewrite.view(act).input_id("x");
  mask_by(rewrite, side, y);
  rewrite.replace(
      {act, add}, add,
      rewrite.make("elementwise_add_act", {{"x", x}, {"y", y}}, {{"out", addition.output_id("sum")}},
                   attributes_of(rewrite.program().op(act), "y"), addition.op().role));
  return true;
}

// Whether a relu_grad that looks at `positive` is the gradient of a fused op.
bool masks_fused(const Rewrite& rewrite, ValueId positive) {
  const auto with_relu = [&](OpId op, const char* of) {
    return rewrite.view(op).text("act") == "relu" && rewrite.view(op).text("of") == of;
  };
  const OpId writer = rewrite.writer_of_type(positive, "elementwise_add_act");
  if (writer != kNone && with_relu(writer, "sum")) return true;
  const auto& readers = rewrite.readers(positive);
  return std::any_of(readers.begin(), readers.end(), [&](OpId reader) {
    return reader != kNone && rewrite.program().op(reader).type == "elementwise_add_act" &&
           rewrite.view(reader).input_id("y") == positive && with_relu(reader, "y");
  });
}

bool fuse_mask(Rewrite& rewrite, OpId mask) {
  const OpView relu = rewrite.view(mask);
  const ValueId y = relu.input_id("y"), dy = relu.input_id("dy");
  if (!masks_fused(rewrite, y)) return false;
  std::vector<OpId> parts = {mask};
  Arguments inputs = {{"y", y}, {"dy", dy}};
  if (const OpId add = rewrite.writer_for_one(dy, "elementwise_add"); add != kNone) {
    const OpView addition = rewrite.view(add);
    parts.push_back(add);
    inputs = {{"y", y}, {"dy", addition.input_id("x")}, {"more", addition.input_id("y")}};
  }
  rewrite.replace(
      parts, mask,
      rewrite.make("elementwise_add_act_grad", inputs, {{"dx", relu.output_id("dx")}}, {}, relu.op().role));
  return true;
}

}  // namespace

void fuse_elewise_add_act(Program& program, const PassContext& context) {
  if (!device_has_all(context, "fuse_elewise_add_act", {"elementwise_add_act", "elementwise_add_act_grad"}))
    return;
  const int of_sums = rewrite_each(program, context.ops, "relu", fuse_act_of_sum) +
                      rewrite_each(program, context.ops, "scale", fuse_act_of_sum);
  const int of_sides = rewrite_each(program, context.ops, "elementwise_add", fuse_act_of_side);
  const int backward = rewrite_each(program, context.ops, "relu_grad", fuse_mask);
  tell_found(context, "fuse_elewise_add_act", of_sums + of_sides, backward);
}

}  // namespace fleetrun::runtime
