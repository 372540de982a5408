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

// Whether the rows of the steps before `last` were written by `saved_at`, when the checkpoint of that step was saved (seconds since 1970).
// Otherwise another training has written rows meanwhile.
bool ends_by(const std::string& history, std::int64_t last, double saved_at);

// A training can do without: what goes wrong is a warning, and the last word about it.
class TrainingHistory {
 public:
  struct Start {
    std::int64_t steps = 0;  // of the checkpoint that the training goes on from; 0: there is none
    double saved_at = 0;     // when it was saved, in seconds since 1970
  };

  // Goes on with the file at `path` after the checkpoint: what an earlier attempt recorded of later steps goes, because the training repeats
  // them, and so does what another training recorded after that checkpoint. `out` gets the warning.
  TrainingHistory(const std::string& path, const Start& start, std::ostream& out);

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
