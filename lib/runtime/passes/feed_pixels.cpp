#include "runtime/passes/feed_pixels.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "job/spec/data_set_facts.h"
#include "runtime/data/augment.h"

namespace fleetrun::runtime {
namespace {

bool reads(const Op& op, ValueId id) { return std::ranges::find(op.inputs, id) != op.inputs.end(); }

// The op that casts the value, if no other op reads it; the end of the ops otherwise.
std::vector<Op>::iterator only_cast(Program& program, ValueId id) {
  const auto reader = std::ranges::find_if(program.ops, [id](const Op& op) { return reads(op, id); });
  if (reader == program.ops.end() || reader->type != "cast") return program.ops.end();
  const bool others =
      std::any_of(reader + 1, program.ops.end(), [id](const Op& op) { return reads(op, id); });
  return others ? program.ops.end() : reader;
}

// Gives the value the type that all its readers want.
void take_over_cast(Program& program, ValueId id) {
  const auto cast = only_cast(program, id);
  if (cast == program.ops.end()) return;
  const ValueId narrow = cast->outputs.front();
  program.value(id).dtype = program.value(narrow).dtype;
  program.ops.erase(cast);
  for (Op& op : program.ops) std::ranges::replace(op.inputs, narrow, id);
}

std::vector<double> first_numbers(const std::array<float, kMaxChannels>& numbers, std::int64_t count) {
  return {numbers.begin(), numbers.begin() + count};
}

}  // namespace

void feed_pixels(Program& program, const OpTable& ops, const job::DataSetSpec& set) {
  const ValueId image = program.find("image");
  const Shape shape = program.value(image).shape;
  const Normalisation normalisation = make_normalisation(set.mean, set.deviation, static_cast<int>(shape[1]));
  take_over_cast(program, image);
  program.value(image).kind = ValueKind::activation;
  const ValueId pixels =
      program.add_value({.name = "pixels", .dtype = DType::u8, .shape = shape, .kind = ValueKind::feed});
  const ValueId view = program.add_value(
      {.name = "view", .dtype = DType::i32, .shape = {shape[0], kViewNumbers}, .kind = ValueKind::feed});
  Op op = {.type = "crop_mirror_normalize",
           .inputs = {pixels, view},
           .outputs = {image},
           .attributes = {{"mean", first_numbers(normalisation.mean, shape[1])},
                          {"scale", first_numbers(normalisation.scale, shape[1])},
                          {"dtype", std::string(describe(program.value(image).dtype))}}};
  Inference inference(find_op(ops, op.type), program, op);
  inference.def().infer(inference);
  program.ops.insert(program.ops.begin(), std::move(op));
}

void feed_evaluation_pixels(Program& program, const OpTable& ops, const job::DataSpec& data) {
  feed_pixels(program, ops, job::evaluated_set(data).value_or(data.train));
}

}  // namespace fleetrun::runtime
