// From job.json, and the changes of the command line, to a JobSpec. Reports all mistakes together.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "job/spec/job_spec.h"

namespace fleetrun::job {

struct KeyValue {
  std::string key;    // "train.epochs"
  std::string value;  // as JSON; null when there is none
  std::string
      origin;  // "default", "job.json:12:5", "command line", "alias strategy.thread_num, job.json:3:4"
  bool is_set = false;  // in the job file, its strategy file or on the command line

  bool operator==(const KeyValue&) const = default;
};

struct ParsedJob {
  JobSpec spec;
  std::vector<KeyValue> values;  // of each key that this build supports, in the order of the table
  std::string
      text;  // of the file, before the changes of the command line; with the content of the strategy file
  std::vector<std::string> notes;  // what a user should know but need not change
  std::vector<std::string>
      turned_off;  // fields of the strategy file that fleetrun does not have, for which the job says false
};

// `overrides` are the words after the job file, "key.path=value"; values are JSON where they can be, else
// text. Throws Error(missing|permission) when the file cannot be read; Error(config) with a line for each
// thing that is wrong, "file:line:column: key.path: what was found, what was wanted"; Error(usage) for a word
// that is not an override.
ParsedJob parse_job_file(const std::string& path, const std::vector<std::string>& overrides);

// The same for a text that stands in the file `name`, whose folder is where relative paths start.
ParsedJob parse_job_text(std::string_view text, const std::string& name,
                         const std::vector<std::string>& overrides);

// The same for ParsedJob::text of the launcher, which has read the strategy file.
ParsedJob parse_handed_job(std::string_view text, const std::string& name,
                           const std::vector<std::string>& overrides);

}  // namespace fleetrun::job
