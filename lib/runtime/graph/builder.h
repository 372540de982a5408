// Adds ops to a program by the names of their arguments and lets each infer its shapes.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

class Builder {
 public:
  // `frozen` as in is_frozen().
  Builder(Program& program, const OpTable& ops, std::vector<std::string> frozen = {})
      : program_(program), ops_(ops), frozen_(std::move(frozen)) {}

  Program& program() { return program_; }
  const OpTable& ops() const { return ops_; }

  ValueId feed(const std::string& name, Shape shape, DType dtype = DType::f32);
  // A frozen parameter becomes a state that belongs to no parameter, which nothing writes.
  ValueId parameter(const std::string& name, Shape shape, Init init);
  ValueId state(const std::string& name, Shape shape, Init init, ValueId of);

  struct Request {
    std::string type;
    Arguments inputs;
    Attributes attributes;
    Role role = Role::forward;
    std::string name;                  // outputs are called <name>, or <name>.<output> when there are several
    std::vector<std::string> outputs;  // those wanted; empty: all
  };

  // The outputs in the order of the definition, kNone for those not wanted. In-place outputs are the
  // input value itself. Throws Error(config) from the op's own checks, Error(internal) for wrong arguments.
  std::vector<ValueId> add(const Request& request);

  // The only or first output of `add`, with role forward.
  ValueId op(const std::string& name, const std::string& type, const Arguments& inputs,
             Attributes attributes = {});

 private:
  std::vector<ValueId> make_outputs(const OpDef& def, const Request& request,
                                    const std::vector<ValueId>& inputs);

  Program& program_;
  const OpTable& ops_;
  std::vector<std::string> frozen_;
};

// Whether one of the patterns is the name of this parameter or of a layer around it. "conv1" is the name of the layer of
// conv1.weight, and so is "layer1*" of layer1.0.conv1.weight: * stands for any text, ? for any character (fnmatch(3)).
bool is_frozen(const std::vector<std::string>& patterns, const std::string& parameter);

}  // namespace fleetrun::runtime
