// The folder with the report of `fleetrun eval`. It may hold files of the user, too, and several evaluations may write to it at the same
// time: the last one that ends replaces the report.
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// Begins the name of the job that `fleetrun eval MODEL DATA` makes for one evaluation.
inline constexpr const char* kEvalJobPrefix = ".fleetrun_eval_job-";
inline constexpr const char* kEvalJobName = "job.json";  // under which it becomes part of the report

struct NamedContent {
  std::string name, content;
};

// Under each name of a report there must be nothing, or what an evaluation wrote. Otherwise throws Error(create).
void require_own_eval_folder(const std::string& folder);

// Replaces the files of the report in the folder, which is created if it does not exist. Throws Error(create|io), and Error(temporary) when
// another evaluation holds the folder for long.
void publish_eval_report(const std::string& folder, const std::vector<NamedContent>& files);

}  // namespace fleetrun
