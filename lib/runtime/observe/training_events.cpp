#include "runtime/observe/training_events.h"

#include <chrono>
#include <ostream>
#include <utility>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TrainingEvents::TrainingEvents(const std::string& folder, std::int64_t steps_before, std::ostream& out)
    : out_(out) {
  try {
    file_ = std::make_unique<EventFile>(folder, wall_time());
    if (steps_before > 0) file_->start_again_at(steps_before + 1, wall_time());
  } catch (const Error& error) {
    out_ << "warning: no more events for TensorBoard: " << error.message() << std::endl;
    file_.reset();
  }
}

void TrainingEvents::add(std::int64_t step, const std::vector<Scalar>& scalars) {
  if (!file_) return;
  try {
    file_->add(step, wall_time(), scalars);
  } catch (const Error& error) {
    if (!std::exchange(warned_, true))
      out_ << "warning: events are missing for TensorBoard: " << error.message() << std::endl;
  }
}

}  // namespace fleetrun::runtime
