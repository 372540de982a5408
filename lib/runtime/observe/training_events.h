// What a training shows of itself in TensorBoard. It can do without: what goes wrong is a warning. Events that a full disk does not take
// are missing, and the others follow.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "runtime/observe/tensorboard_events.h"

namespace fleetrun::runtime {

class TrainingEvents {
 public:
  // Begins a file in `folder`. `steps_before`: those of the checkpoint that the training goes on from (0: none); what an
  // earlier attempt recorded of later steps no longer counts. `out` gets the warning.
  TrainingEvents(const std::string& folder, std::int64_t steps_before, std::ostream& out);

  void add(std::int64_t step, const std::vector<Scalar>& scalars);

 private:
  std::ostream& out_;
  std::unique_ptr<EventFile> file_;  // null: none
  bool warned_ = false;
};

}  // namespace fleetrun::runtime
