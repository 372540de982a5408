// The table log/history.csv: a row for each logged step and a row for each evaluation. The launcher makes the file, so that it
// knows it for its own, and draws the curves of log/report.html from it.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "runtime/observe/tensorboard_events.h"

namespace fleetrun::runtime {

// The first lines of a history up to the row of step `last`, without a line that was cut off. "" for a text that is no history.
std::string history_until(const std::string& text, std::int64_t last);

// A training can do without: what goes wrong is a warning, and the last word about it.
class TrainingHistory {
 public:
  // Goes on with the file at `path` after `steps_before`, the steps of the checkpoint that the training goes on from: what an
  // earlier attempt recorded of later steps goes, because the training repeats them. `out` gets the warning.
  TrainingHistory(const std::string& path, std::int64_t steps_before, std::ostream& out);

  // `scalars` by the names that TensorBoard shows; the table has a column for each that docs/run-page.md lists. An evaluation that is
  // already in the last row is not added again.
  void add(std::int64_t step, int epoch, const std::vector<Scalar>& scalars);

 private:
  void give_up(const std::string& why);

  std::string path_;
  std::ostream& out_;
  UniqueFd file_;  // closed: no more
  std::int64_t tested_ =
      -1;  // step of the evaluation in the last row of the file as it was found; -1: it has none
};

}  // namespace fleetrun::runtime
