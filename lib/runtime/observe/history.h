// The table log/history.csv: a row for each logged step and a row for each evaluation. The launcher makes the file, so that it
// recognises it as its own, and draws the curves of log/report.html from it.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "runtime/observe/tensorboard_events.h"

namespace fleetrun::runtime {

// The checkpoint that a training goes on from.
struct SavedPoint {
  std::int64_t steps = 0;    // in the count of the ranks that saved it; 0: there is no checkpoint
  std::string history = {};  // path of the history in it, which may be missing
  std::string model = {};    // path of the weights in it
};

// A training can do without: what goes wrong is a warning. Rows that a full disk does not take are missing, and the others follow.
class TrainingHistory {
 public:
  // Begins the file at `path` anew, with the rows of the checkpoint: an earlier attempt may have run on another node, and another training
  // may have written to the file since. `first_step`: the steps of the checkpoint, as the ranks count them now. `out` gets the warning.
  TrainingHistory(const std::string& path, const SavedPoint& point, std::int64_t first_step,
                  std::ostream& out);

  // `scalars` by the names that TensorBoard shows; the table has a column for each that docs/run-page.md lists. An evaluation that is
  // already in the last row, with the same scores, is not added again.
  void add(std::int64_t step, int epoch, const std::vector<Scalar>& scalars);

  int file() const { return file_.get(); }  // can also be read; -1 after an error

 private:
  std::string rows_of(const SavedPoint& point) const;
  void write_row(const std::string& row);
  void give_up(const std::string& why);

  std::string path_;
  std::ostream& out_;
  UniqueFd file_;  // closed: no more
  bool warned_ = false;
  std::int64_t tested_ =
      -1;  // step of the evaluation in the last row of the checkpoint, as the ranks count it now; -1: none
  std::string tested_scores_;  // in that row
};

}  // namespace fleetrun::runtime
