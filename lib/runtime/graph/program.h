// A static program: values and ops as ids into vectors, ops in an order in which they can run.
// A value is written by one op; the exceptions are ops that update in place (collectives, optimizers, batch norms),
// which name the same value among their inputs and outputs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/dtype.h"
#include "runtime/graph/attributes.h"
#include "runtime/tensor/layout.h"
#include "runtime/tensor/shape.h"

namespace fleetrun::runtime {

using ValueId = int;
using OpId = int;
constexpr int kNone = -1;

enum class ValueKind {
  feed,        // given to each run
  parameter,   // trained
  state,       // kept from step to step, belongs to a parameter (velocity) or an op (running mean)
  gradient,    // of a parameter; lives in memory of the communicator
  activation,  // made and used within one step
};
std::string_view describe(ValueKind kind);

enum class Role { forward, backward, communication, optimize };
std::string_view describe(Role role);

// How a parameter or state starts.
struct Init {
  enum class How { constant, uniform, normal };
  How how = How::constant;
  double value = 0;  // the constant; the bound: uniform in [-value, value); the standard deviation around 0

  bool operator==(const Init&) const = default;
};
std::string_view describe(Init::How how);

struct Value {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  ValueKind kind = ValueKind::activation;
  ValueId of = kNone;  // the parameter that a gradient or state belongs to
  Init init;           // parameters and states
  Layout layout;       // plain until a device chooses

  std::size_t bytes() const;  // of the tensor as it lies in memory
};

struct Op {
  std::string type;
  std::vector<ValueId> inputs;  // in the order of the op's definition; kNone where an optional one is absent
  std::vector<ValueId> outputs;
  Attributes attributes;
  Role role = Role::forward;
  // It waits for the ops that write these first, where those are in front of it, though it does not read them.
  std::vector<ValueId> after = {};
};

struct Program {
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<ValueId> fetches;  // read after a run; their memory is never reused
  // Parameters or gradients of one dtype that lie one after the other in this order, list after list.
  std::vector<std::vector<ValueId>> contiguous;

  const Value& value(ValueId id) const { return values.at(static_cast<std::size_t>(id)); }
  Value& value(ValueId id) { return values.at(static_cast<std::size_t>(id)); }
  const Op& op(OpId id) const { return ops.at(static_cast<std::size_t>(id)); }

  ValueId add_value(Value value);                      // Throws Error(internal) when the name is taken
  ValueId find(std::string_view name) const;           // kNone when there is none
  std::vector<ValueId> of_kind(ValueKind kind) const;  // in order of their ids
  ValueId gradient_of(ValueId parameter) const;        // kNone when there is none
};

}  // namespace fleetrun::runtime
