// What fusions have in common: which ops write and read a value, and replacing ops by fewer.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/passes/shared/pass_context.h"

namespace fleetrun::runtime {

// Whether the device has all these ops. Tells which one is missing, in the name of the pass.
bool device_has_all(const PassContext& context, std::string_view pass,
                    std::initializer_list<const char*> ops);

// "fuse_bn_act: detected 33 subgraphs", and likewise of the backward part.
void tell_found(const PassContext& context, std::string_view pass, int forward, int backward);

class Rewrite {
 public:
  Rewrite(Program& program, const OpTable& ops);

  const Program& program() const { return program_; }
  OpId size() const { return static_cast<OpId>(program_.ops.size()); }
  OpView view(OpId op) const;

  // An op with its arguments where its definition has them; of two of one name the second counts.
  Op make(const std::string& type, const Arguments& inputs, const Arguments& outputs, Attributes attributes,
          Role role) const;

  // The op that writes the value, kNone when nobody or more than one does.
  OpId writer(ValueId id) const;
  // The writer when it is an op of this type that is still there, else kNone.
  OpId writer_of_type(ValueId id, std::string_view type) const;
  // writer_of_type of a value that has an only_reader, else kNone.
  OpId writer_for_one(ValueId id, std::string_view type) const;
  // In the order of the program; kNone stands for a fetch.
  const std::vector<OpId>& readers(ValueId id) const { return readers_.at(static_cast<std::size_t>(id)); }
  // The only op that reads the value, kNone when others do, or when it outlives the step or is fetched.
  OpId only_reader(ValueId id) const;

  bool there(OpId op) const { return !gone_.at(static_cast<std::size_t>(op)); }

  // Puts `fused` in the place of `place`, and takes away all parts; `place` is one of them.
  void replace(const std::vector<OpId>& parts, OpId place, Op fused);

  // The op reads `to` in place of `from`. readers() still has the original ones.
  void redirect(OpId reader, ValueId from, ValueId to);

  // Carries it out. Nothing waits for other ops by Op::after yet: mere order comes after all fusions.
  void finish();

 private:
  Program& program_;
  const OpTable& ops_;
  std::vector<OpId> writer_;                 // by ValueId
  std::vector<std::vector<OpId>> readers_;   // by ValueId
  std::vector<bool> gone_;                   // by OpId
  std::vector<std::pair<OpId, Op>> placed_;  // by place
};

// Offers each op of this type to `rewrite_one`, unless an earlier offer took it away. `rewrite_one` replaces it or returns false.
// Returns the number of ops that were replaced.
int rewrite_each(Program& program, const OpTable& ops, std::string_view type,
                 bool (*rewrite_one)(Rewrite& rewrite, OpId op));

}  // namespace fleetrun::runtime
