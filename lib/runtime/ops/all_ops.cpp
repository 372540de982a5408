#include "runtime/ops/op_def.h"

namespace fleetrun::runtime {

const OpTable& all_ops() {
  static const OpTable table = {};
  return table;
}

}  // namespace fleetrun::runtime
