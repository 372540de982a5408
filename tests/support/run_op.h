// One op on the CPU with plain inputs and outputs.
#pragma once
#include <map>
#include <string>
#include <variant>

#include "runtime/graph/builder.h"
#include "support/run_program.h"

namespace fleetrun::runtime::test {

struct Given {
  Shape shape;
  std::variant<Floats, std::vector<std::int32_t>> values;
};

class OpRun {
 public:
  OpRun(const std::string& type, const std::map<std::string, Given>& inputs, const Attributes& attributes,
        Device& device)
      : run_(build(type, inputs, attributes), all_ops(), device) {
    for (const auto& [name, given] : inputs) {
      const ValueId id = run_.program().find(name);
      std::visit([&](const auto& values) { run_.set(id, values); }, given.values);
    }
    run_.run();
  }

  ProgramRun& program() { return run_; }

  Floats output(const std::string& name) const {
    return run_.get(outputs_.at(static_cast<std::size_t>(def_->output_index(name))));
  }

 private:
  Program build(const std::string& type, const std::map<std::string, Given>& inputs,
                const Attributes& attributes) {
    Program program;
    Builder builder(program, all_ops());
    Arguments arguments;
    for (const auto& [name, given] : inputs) {
      const DType dtype = given.values.index() == 0 ? DType::f32 : DType::i32;
      arguments.emplace_back(name, builder.feed(name, given.shape, dtype));
    }
    def_ = &find_op(all_ops(), type);
    outputs_ = builder.add({.type = type, .inputs = arguments, .attributes = attributes, .name = "out"});
    return program;
  }

  const OpDef* def_ = nullptr;
  std::vector<ValueId> outputs_;
  ProgramRun run_;
};

// The first output of an op, computed on the CPU by one thread.
inline Floats run_op(const std::string& type, const std::map<std::string, Given>& inputs,
                     const Attributes& attributes = {}) {
  const auto device = make_cpu_device();
  return OpRun(type, inputs, attributes, *device).output(find_op(all_ops(), type).output_name(0));
}

}  // namespace fleetrun::runtime::test
