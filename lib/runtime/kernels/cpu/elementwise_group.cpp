// Steps over pieces that stay in the first cache: values between two steps never reach memory.
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/kernels/cpu/loops/channel_rows.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/elementwise_steps.h"
#include "runtime/ops/rules/elementwise_code.h"

namespace fleetrun::runtime::cpu {
namespace {

// Floats. Pieces of 2048 were faster than of 512, 1024 and 4096; many results share what a first cache of 32 KiB holds.
constexpr std::int64_t kLongestPiece = 2048, kCached = 8192;
static_assert(kCached / kGroupSteps % kLanes == 0);

ElementLoop loop_of(const std::string& op) {
  struct Entry {
    const char* op;
    ElementLoop loop;
  };
  constexpr std::array kLoops = {Entry{"elementwise_add", vector_clones<each_element<sum_of, 2>>},
                                 Entry{"relu", vector_clones<each_element<relu_of, 1>>},
                                 Entry{"relu_grad", vector_clones<each_element<relu_grad_of, 2>>},
                                 Entry{"relu6", vector_clones<each_element<relu6_of, 1>>},
                                 Entry{"relu6_grad", vector_clones<each_element<relu6_grad_of, 2>>},
                                 Entry{"scale", vector_clones<each_element<scale_of, 1>>}};
  for (const Entry& entry : kLoops)
    if (entry.op == op) return entry.loop;
  throw Error(ErrorKind::internal, fmt::format("elementwise_group has no step {} on the CPU", op));
}

// Where a step reads or writes: a tensor of the program, or the result of a step in the cache.
struct Source {
  ValueId tensor = kNone;
  std::size_t step = 0;
};

struct Step {
  ElementLoop loop = nullptr;
  Source a, b;
  ValueId written = kNone;  // the tensor that gets the result, if any
  bool at_once = false;     // the result goes there directly: inputs whose place it may have are read no more
  std::int64_t place = 0;   // of a result that does not: among those in the cache
  ElementConstants constants = {};
};

class ElementwiseGroup : public Kernel {
 public:
  explicit ElementwiseGroup(const OpView& op) : count_(elements_of(op, op.input("x0"))) {
    const ElementwiseCode code = parse_elementwise_code(op.text("code"));
    for (const ElementwiseStep& step : code) add(op, code, step);
    for (std::size_t i = steps_.size(); i-- > 0;) {
      steps_[i].at_once = steps_[i].written != kNone;
      if (steps_[i].a.tensor != kNone || steps_[i].b.tensor != kNone)
        break;  // those before wait for this one
    }
    piece_ = std::min(kLongestPiece,
                      kCached / std::max<std::int64_t>(place_cached_results(), 1) / kLanes * kLanes);
  }

  void run(const RunContext& context) override {
    parallel_for(count_, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t piece = begin; piece < end; piece += piece_)
        run_piece(context, piece, std::min(piece_, end - piece));
    });
  }

 private:
  void add(const OpView& op, const ElementwiseCode& code, const ElementwiseStep& step) {
    const auto source = [&](const ElementwisePlace& place) -> Source {
      if (place.kind == 'x') return {.tensor = op.input_id(fmt::format("x{}", place.index))};
      for (std::size_t i = 0; i < steps_.size(); ++i)
        if (code[i].result == place) return {.step = i};
      throw Error(ErrorKind::internal, "elementwise_group reads what no step made");
    };
    Step made = {.loop = loop_of(step.op), .a = source(step.arguments.front())};
    made.b = step.arguments.size() > 1 ? source(step.arguments[1]) : made.a;
    if (step.result.kind == 'y') made.written = op.output_id(fmt::format("y{}", step.result.index));
    for (std::size_t i = 0; i < step.numbers.size(); ++i)
      made.constants.at(i) = static_cast<float>(step.numbers[i]);
    steps_.push_back(made);
  }

  std::int64_t place_cached_results() {
    std::int64_t cached = 0;
    for (Step& step : steps_)
      if (!step.at_once) step.place = cached++;
    return cached;
  }

  void run_piece(const RunContext& context, std::int64_t first, std::int64_t count) const {
    alignas(64) std::array<float, kCached> cached;
    std::array<const float*, kGroupSteps> made{};
    const auto read = [&](const Source& source) {
      return source.tensor == kNone ? made[source.step] : at(context, source.tensor) + first;
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      float* const out =
          step.at_once ? at(context, step.written) + first : cached.data() + step.place * piece_;
      step.loop({read(step.a), read(step.b)}, out, count, step.constants);
      made[i] = out;
    }
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i].written != kNone && !steps_[i].at_once)
        std::memcpy(at(context, steps_[i].written) + first, made[i],
                    static_cast<std::size_t>(count) * sizeof(float));
  }

  std::vector<Step> steps_;
  std::int64_t count_;
  std::int64_t piece_ = 0;  // floats of a tensor that all steps work on in turn
};

LayoutChoice choose_group(const LayoutQuery& query, Device& device) {
  const LayoutChoice choice = like_the_blocked(query, device);
  const ElementwiseCode code = parse_elementwise_code(query.op.text("code"));
  const bool moves = std::any_of(code.begin(), code.end(), [](const ElementwiseStep& step) {
    return step.op == "scale" && step.numbers.at(1) != 0.0;
  });
  return moves ? unless_padded(query, choice) : choice;
}

}  // namespace

KernelDef elementwise_group_kernel() {
  return {.choose_layouts = choose_group, .make = make_kernel<ElementwiseGroup>};
}

}  // namespace fleetrun::runtime::cpu
