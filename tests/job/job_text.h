// Jobs for the tests of lib/job, and what parsing says about them.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error/error.h"
#include "job/parse_job.h"

namespace fleetrun::job {

// A good job in the file /jobs/a.json; `more` is put before its closing brace, on line 4.
inline std::string good_job(const std::string& more = "") {
  return "{\n"
         "\"model\": {\"name\": \"lenet\"},\n"
         "\"data\": {\"train\": {\"format\": \"synthetic\", \"samples\": 64, \"shape\": [1, 28, 28], \"classes\": 10}}" +
         (more.empty() ? "" : ",\n" + more) + "}\n";
}

inline ParsedJob parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_job_text(text, "/jobs/a.json", overrides);
}

// What is wrong with a job in the file a.json; "" when nothing is, and the kind when it is not config.
inline std::string complaint(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_job_text(text, "a.json", overrides);
    return "";
  } catch (const Error& error) {
    const std::string kind = error.kind() == ErrorKind::config ? "" : std::to_string(error.exit_code()) + " ";
    return kind + error.message();
  }
}

}  // namespace fleetrun::job
