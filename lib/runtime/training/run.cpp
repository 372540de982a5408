#include "runtime/training/run.h"

#include <ostream>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "runtime/training/trainer/numerics.h"

namespace fleetrun::runtime {

const Batch* next_batch(Run& run, Loader& loader) {
  const SpanHere span(run.observers.trace.timeline(), run.observers.wait);
  const PhaseHere here(run.page, Phase::reading);
  return book(run, TimeUse::data, [&] { return loader.next([&run] { run.page.beat(); }); });
}

void print_skipped(Run& run, Loader& loader) {
  for (const std::string& why : loader.take_skipped())
    run.out << "warning: a sample is skipped: " << printable(why) << std::endl;
}

void stop_without_numbers(const Run& run, const std::string& what, double value, int under_way) {
  const std::string where = first_not_finite(run.trainer.executor().program(), run.trainer.storage());
  throw Error(ErrorKind::numerics,
              fmt::format("{} is {} at step {}{}", what, describe_number(value),
                          run.progress.state.steps + under_way, where.empty() ? "" : ", and so is " + where),
              "a lower optimizer.learning_rate or a warm-up often helps");
}

}  // namespace fleetrun::runtime
