#include "runtime/graph/verify.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

[[noreturn]] void fail(const Op& op, std::size_t index, const std::string& message) {
  throw Error(ErrorKind::internal, fmt::format("op {} ({}): {}", index, op.type, message));
}

class Verifier {
 public:
  Verifier(const Program& program, const OpTable& ops)
      : program_(program), ops_(ops), written_(program.values.size(), false) {
    inferred_.values = program.values;
  }

  void run() {
    check_values();
    check_contiguous();
    for (std::size_t i = 0; i < program_.ops.size(); ++i) check_op(i);
    for (const ValueId id : program_.fetches)
      if (!written_.at(static_cast<std::size_t>(id)))
        throw Error(ErrorKind::internal, fmt::format("fetch {} is never written", program_.value(id).name));
  }

 private:
  void check_values() {
    for (std::size_t i = 0; i < program_.values.size(); ++i) {
      const Value& value = program_.values[i];
      written_[i] = value.kind == ValueKind::feed || value.kind == ValueKind::parameter ||
                    value.kind == ValueKind::state;
      if (value.kind != ValueKind::gradient) continue;
      if (value.of == kNone || program_.value(value.of).shape != value.shape)
        throw Error(ErrorKind::internal,
                    fmt::format("gradient {} has not the shape of its parameter", value.name));
    }
  }

  void check_contiguous() const {
    std::vector<bool> placed(program_.values.size(), false);
    for (const std::vector<ValueId>& ids : program_.contiguous)
      for (const ValueId id : ids) {
        const Value& value = program_.value(id);
        const Value& first = program_.value(ids.front());
        if (value.kind != first.kind || value.dtype != first.dtype ||
            (value.kind != ValueKind::gradient && value.kind != ValueKind::parameter))
          throw Error(ErrorKind::internal, fmt::format("{} {} cannot lie after {} {}", describe(value.kind),
                                                       value.name, describe(first.kind), first.name));
        if (placed[static_cast<std::size_t>(id)])
          throw Error(ErrorKind::internal, fmt::format("{} is to lie in two places", value.name));
        placed[static_cast<std::size_t>(id)] = true;
      }
  }

  void check_op(std::size_t index) {
    const Op& op = program_.ops[index];
    const OpDef& def = find_op(ops_, op.type);
    const auto places = [&](const std::vector<std::string>& arguments, const std::vector<ValueId>& ids) {
      try {
        return ArgumentPlaces(arguments, ids.size());
      } catch (const Error& error) {
        fail(op, index, error.message());
      }
    };
    const ArgumentPlaces inputs = places(def.inputs, op.inputs), outputs = places(def.outputs, op.outputs);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) check_input(op, def, index, i, inputs.argument_at(i));
    for (const ValueId id : op.after) check_read(op, index, id);
    for (std::size_t i = 0; i < def.outputs.size(); ++i)
      check_outputs(op, def, index, static_cast<int>(i), outputs, inputs);
    check_shapes(op, def, index);
  }

  void check_input(const Op& op, const OpDef& def, std::size_t index, std::size_t place, int argument) {
    const ValueId id = op.inputs[place];
    if (id != kNone)
      check_read(op, index, id);
    else if (!def.input_optional(argument))
      fail(op, index, fmt::format("lacks its input {}", def.input_name(argument)));
  }

  void check_read(const Op& op, std::size_t index, ValueId id) {
    if (static_cast<std::size_t>(id) >= program_.values.size())
      fail(op, index, fmt::format("reads value {}, which does not exist", id));
    if (!written_[static_cast<std::size_t>(id)])
      fail(op, index, fmt::format("reads {} before it is written", program_.value(id).name));
  }

  // Of one argument.
  void check_outputs(const Op& op, const OpDef& def, std::size_t index, int argument,
                     const ArgumentPlaces& outputs, const ArgumentPlaces& inputs) {
    const std::string name = def.output_name(argument);
    const bool in_place = std::find(def.in_place.begin(), def.in_place.end(), name) != def.in_place.end();
    const auto [first, count] = outputs.of(argument);
    for (std::size_t i = 0; i < count; ++i) {
      const ValueId id = op.outputs[first + i];
      if (id == kNone) continue;
      const ValueId read = in_place ? op.inputs[inputs.of(def.input_index(name)).first + i] : kNone;
      check_write(op, index, id, in_place ? &read : nullptr);
    }
  }

  // `in_place`: what the op reads in this place; null: it makes a new value.
  void check_write(const Op& op, std::size_t index, ValueId id, const ValueId* in_place) {
    if (static_cast<std::size_t>(id) >= program_.values.size())
      fail(op, index, fmt::format("writes value {}, which does not exist", id));
    if (in_place != nullptr) {
      if (*in_place != id)
        fail(op, index,
             fmt::format("updates {} in place, but reads another value there", program_.value(id).name));
    } else if (written_[static_cast<std::size_t>(id)]) {
      fail(op, index, fmt::format("writes {} a second time", program_.value(id).name));
    }
    written_[static_cast<std::size_t>(id)] = true;
  }

  void check_shapes(const Op& op, const OpDef& def, std::size_t index) {
    Inference inference(def, inferred_, op);
    def.infer(inference);
    for (const ValueId id : op.outputs) {
      if (id == kNone) continue;
      const Value& inferred = inferred_.value(id);
      const Value& value = program_.value(id);
      if (inferred.shape != value.shape || inferred.dtype != value.dtype)
        fail(op, index,
             fmt::format("{} is {}{}, but its inputs make {}{}", value.name, describe(value.dtype),
                         describe(value.shape), describe(inferred.dtype), describe(inferred.shape)));
    }
  }

  const Program& program_;
  const OpTable& ops_;
  std::vector<bool> written_;
  Program inferred_;  // values alone: infer writes into them, and each is compared right after
};

}  // namespace

void verify(const Program& program, const OpTable& ops) { Verifier(program, ops).run(); }

}  // namespace fleetrun::runtime
