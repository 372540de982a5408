// What an op is, on any device: its arguments, the shapes it makes, its gradient. Kernels are elsewhere.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph/program.h"

namespace fleetrun::runtime {

struct OpDef;

// One op of a program, its arguments found by the names that its definition gives them.
class OpView {
 public:
  OpView(const OpDef& def, const Program& program, const Op& op) : def_(&def), program_(&program), op_(&op) {}

  const OpDef& def() const { return *def_; }
  const Op& op() const { return *op_; }
  const Program& program() const { return *program_; }

  bool has_input(std::string_view name) const { return input_id(name) != kNone; }
  bool has_output(std::string_view name) const { return output_id(name) != kNone; }
  ValueId input_id(
      std::string_view name) const;  // kNone when absent. Throws Error(internal) for a name not in def
  ValueId output_id(std::string_view name) const;
  std::span<const ValueId> input_ids(std::string_view name) const;  // of a repeated argument, all of them
  std::span<const ValueId> output_ids(std::string_view name) const;
  const Value& input(std::string_view name) const;  // Throws Error(internal) when absent
  const Value& output(std::string_view name) const;

  // Throw Error(internal) when the attribute is missing or of another type.
  bool flag(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;  // an integer counts as a number
  const std::string& text(const std::string& name) const;
  const std::vector<std::int64_t>& integers(const std::string& name) const;
  const std::vector<double>& numbers(const std::string& name) const;

  // Throws Error(config): "conv2d (conv_0): <message>".
  [[noreturn]] void fail(const std::string& message) const;

 protected:
  const OpDef* def_;
  const Program* program_;
  const Op* op_;
};

// Given to OpDef::infer: reads inputs and attributes, sets shape and dtype of every output that is there.
class Inference : public OpView {
 public:
  Inference(const OpDef& def, Program& program, const Op& op)
      : OpView(def, program, op), writable_(&program) {}
  void set_output(std::string_view name, Shape shape, DType dtype = DType::f32);
  void set(ValueId output, Shape shape, DType dtype = DType::f32);  // one of a list

 private:
  Program* writable_;
};

using Arguments = std::vector<std::pair<std::string, ValueId>>;  // by name; absent ones left out

// Given to OpDef::gradient: emits backward ops and says which value is the gradient of which input.
class GradientRule {
 public:
  virtual ~GradientRule() = default;
  virtual const OpView& forward() const = 0;
  virtual bool wants(std::string_view input) const = 0;  // does anybody need this input's gradient?
  virtual ValueId output_gradient(std::string_view output) const = 0;  // kNone when nothing flows into it
  // Adds a backward op; its outputs in the order of its definition. Leave out outputs that nobody wants by
  // naming only those wanted in `outputs` (empty: all).
  virtual std::vector<ValueId> emit(const std::string& type, const Arguments& inputs, Attributes attributes,
                                    const std::vector<std::string>& outputs = {}) = 0;
  virtual void set_gradient(std::string_view input, ValueId gradient) = 0;
};

// How a test makes one input of a sample.
struct SampleInput {
  enum class Fill {
    uniform,   // in [-1, 1)
    spread,    // distinct and at least 0.05 from each other and from 0, shuffled: for kinks and maxima
    labels,    // i32 in 0..limit-1
    positive,  // in [0.5, 1.5)
  };
  Shape shape;
  Fill fill = Fill::uniform;
  std::int64_t limit = 0;
};

// One case on which an op is tried: against finite differences, and on every device.
struct Sample {
  std::map<std::string, SampleInput> inputs;
  Attributes attributes;
};

struct OpDef {
  std::string name;  // as in ops.def; all_ops() sets it
  // "x", "w"; "b?": an optional one; "x*": a list, and all lists of one op are equally long. The inputs of an Op are in
  // this order, the members of a list side by side.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  void (*infer)(Inference&) = nullptr;
  void (*gradient)(GradientRule&) = nullptr;   // null: nothing flows back through it
  std::vector<Sample> (*samples)() = nullptr;  // null: has no gradient test of its own
  std::vector<std::string> in_place = {};      // outputs that are the input of the same name, updated
  // (output, input): the output may lie where the input does once nobody else reads that, for kernels are done
  // with an element of the input when they write that of the output.
  std::vector<std::pair<std::string, std::string>> may_share = {};

  int input_index(std::string_view argument) const;  // -1 when there is no such argument
  int output_index(std::string_view argument) const;
  bool input_optional(int index) const;
  std::string input_name(int index) const;  // without the mark
  std::string output_name(int index) const;
};

// Which of an op's inputs (or outputs) belong to which argument of its definition.
class ArgumentPlaces {
 public:
  // `arguments`: OpDef::inputs or outputs; `places`: how many the op has. Throws Error(internal) when they do not fit.
  ArgumentPlaces(const std::vector<std::string>& arguments, std::size_t places);

  struct Range {
    std::size_t first = 0, count = 0;
  };
  Range of(int argument) const;              // by its index
  int argument_at(std::size_t place) const;  // the reverse

 private:
  std::vector<Range> ranges_;
  std::size_t list_length_ = 1;
};

// All definitions by name. Passed along rather than looked up in one place, so that a test can break one.
using OpTable = std::map<std::string, OpDef, std::less<>>;
const OpTable& all_ops();  // ops/all_ops.cpp: one line per op

// Throws Error(internal) when there is no such op.
const OpDef& find_op(const OpTable& ops, std::string_view name);

}  // namespace fleetrun::runtime
