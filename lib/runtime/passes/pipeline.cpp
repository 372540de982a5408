#include "runtime/passes/pipeline.h"

#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/graph/verify.h"
#include "runtime/passes/assign_communicators.h"
#include "runtime/passes/insert_all_reduce.h"

namespace fleetrun::runtime {
namespace {

struct Pass {
  const char* name;
  void (*run)(Program&, const PassContext&);
};

constexpr std::array kPasses = {
    Pass{"insert_all_reduce", insert_all_reduce},        // needs every gradient to exist
    Pass{"assign_communicators", assign_communicators},  // needs every collective in its place
};

}  // namespace

void run_passes(Program& program, const PassContext& context) {
  for (const Pass& pass : kPasses)
    with_context(fmt::format("running the pass {}", pass.name), [&] {
      pass.run(program, context);
      verify(program, context.ops);
    });
}

}  // namespace fleetrun::runtime
