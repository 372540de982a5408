// A job while it is being parsed: the spec so far, what was written where, and what is wrong with it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json_reader.h"
#include "job/spec/job_spec.h"

namespace fleetrun::job {

struct Draft {
  std::string file;  // as given
  JobSpec spec;
  std::map<std::string, TextPosition> written;    // good values by their path; line 0: on the command line
  std::map<std::string, std::string> written_as;  // path -> the alias that was used for it; "": its own name
  std::vector<JsonProblem> problems;
  std::vector<std::string> notes;
  bool strategy_names_file = false;  // strategy_file was written as `"strategy": "FILE"`

  std::vector<std::string>
      turned_off;  // fields of the strategy file without keys, for which the job says false

  // Its values hold where the job has none.
  struct StrategyFile {
    std::string name;
    std::map<std::string, TextPosition> written;
    std::vector<JsonProblem> problems;
  };
  std::optional<StrategyFile> strategy_file;

  bool has(const std::string& path) const { return written.count(path) != 0 || is_of_strategy_file(path); }
  bool is_of_strategy_file(const std::string& path) const;

  // Where a value begins in the job file; for one that is not written there, where the nearest object around it begins.
  TextPosition where(const std::string& path) const;
  // "job.json:3:7", "dist_strategy.prototxt:2:1" or "command line".
  std::string place_of(const std::string& path) const;
  // Whether something is wrong with the value at this path or below.
  bool has_problem(const std::string& path) const;
  bool on_command_line(const std::string& path) const {
    return written.count(path) != 0 && where(path).line == 0;
  }

  // The problem's words follow "found ".
  void report(const std::string& path, const std::string& found);
};

// "job.json:3:7" or "command line".
std::string describe_place(const std::string& file, TextPosition position);

// One line for each problem, in the order of the file, then those of the command line.
std::string describe_problems(const std::string& file, std::vector<JsonProblem> problems);

// "alias strategy.thread_num", when this path or an object around it was written under another name.
std::optional<std::string> alias_used(const Draft& draft, const std::string& path);

}  // namespace fleetrun::job
