// The results of tuning, kept in a file for the next start on this host.
//
//   FOLDER/tuned-0123456789abcdef.json   {"place": "node1, AMD EPYC ..., oneDNN 2.6.3",
//                                         "tuned": {"fedcba9876543210": {"job": "...", "settings": [...], ...}}}
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "job/parse_job.h"
#include "runtime/tune/tuned.h"

namespace fleetrun::runtime {

// Everything that decides which settings are the fastest, apart from the host: the job's model, data, optimizer and strategy, the ranks, and
// what the user allowed. Not what a step does not depend on, such as the number of steps, or learning rates.
struct TuneKey {
  std::vector<job::KeyValue> values;  // of the job
  int ranks = 1, ranks_per_node = 1, threads = 1;
  bool amp = false;
  std::string memory;  // "": no limit
};
std::string describe(const TuneKey& key);

class TuneCache {
 public:
  // `place`: all that timings depend on besides the job. Each has a file of its own.
  TuneCache(const std::string& folder, std::string place);

  const std::string& path() const { return path_; }

  // Nothing when the result is not there. Throws Error(data) for a file with another content, Error(permission|io).
  std::optional<Tuned> read(const std::string& key) const;

  // Replaces the result of this key and keeps the others. A file that cannot be understood is made anew.
  // Throws Error(create|io), Error(temporary) when another process keeps it locked.
  void write(const std::string& key, const Tuned& tuned) const;

 private:
  std::string folder_, place_, path_;
};

}  // namespace fleetrun::runtime
