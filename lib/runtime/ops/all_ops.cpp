#include "runtime/graph/op_def.h"

namespace fleetrun::runtime {
namespace ops {

#define EVERYWHERE(op) OpDef op();
#define ON_CPU(op) OpDef op();
#define COLLECTIVE(op) OpDef op();
#include "runtime/ops/ops.def"

namespace {

OpDef named(const char* name, OpDef def) {
  def.name = name;
  return def;
}

}  // namespace
}  // namespace ops

const OpTable& all_ops() {
  static const OpTable table = {
#define EVERYWHERE(op) {#op, ops::named(#op, ops::op())},
#define ON_CPU(op) {#op, ops::named(#op, ops::op())},
#define COLLECTIVE(op) {#op, ops::named(#op, ops::op())},
#include "runtime/ops/ops.def"
  };
  return table;
}

}  // namespace fleetrun::runtime
