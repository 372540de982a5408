// How a device runs ops: one kernel definition per op name, one prepared kernel per op of a program.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/graph/op_def.h"
#include "runtime/tensor/layout.h"

namespace fleetrun::comm {
class Communicator;
}

namespace fleetrun::runtime {

class Device;

// What a kernel gets for one run. Nothing in it is allocated during a run.
struct RunContext {
  void* const* data = nullptr;  // memory of each value, by ValueId
  void* scratch = nullptr;      // Kernel::scratch_bytes() bytes, 64-byte aligned, of this op alone
  std::uint64_t step = 0;       // counts runs; random ops draw from (seed, step, element)
  std::uint64_t merge_step =
      0;  // the same, from an update of strategy.gradient_merge: ops of each k-th run look at it
  std::uint64_t seed = 0;
  comm::Communicator* communicator = nullptr;  // communication ops only
  int stream = 0;                              // kComputeStream or another one; see streams.h
};

// One op, prepared once: primitives created, pointers looked up by value id.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const RunContext& context) = 0;
  virtual std::size_t scratch_bytes() const { return 0; }
  virtual std::string describe() const { return ""; }  // the implementation chosen: "jit:avx512_core"
};

// The layouts in which a kernel wants its inputs and makes its outputs, in the order of the definition.
struct LayoutChoice {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

// The values of an op as they are laid out so far. An input that is a parameter (or the gradient, state of
// one) whose layout nobody has chosen yet may be chosen freely; so may every output.
struct LayoutQuery {
  OpView op;
  std::vector<bool> input_free;  // this kernel is the first to say how the parameter lies
};

// The attribute that says by which of its algorithms an op is done; the usual one without it.
constexpr const char* kAlgorithm = "algorithm";

struct KernelDef {
  LayoutChoice (*choose_layouts)(const LayoutQuery&, Device&) = nullptr;  // null: everything plain
  std::unique_ptr<Kernel> (*make)(const OpView&, Device&) = nullptr;
  bool shares_in_place =
      true;  // false: it reads inputs after it began to write, whatever OpDef::may_share allows
  // By name, the usual one first, those that this device has good code for: ways to do the same that differ in speed,
  // scratch memory and rounding. Both functions above obey the attribute. The host times them, so a device with streams
  // has none here. Null: there is nothing to choose.
  std::vector<std::string> (*algorithms)(const OpView&, Device&) = nullptr;
  // Why a run cannot be repeated from a recording: what the host decides anew each time. Null: it can.
  const char* decided_each_run = nullptr;
  bool waits_for_reader =
      false;  // of a parameter: it is laid out, and made, as the first reader of its output wants that
};

using KernelTable = std::map<std::string, KernelDef, std::less<>>;

std::set<std::string, std::less<>> ops_of(const KernelTable& kernels);

}  // namespace fleetrun::runtime
