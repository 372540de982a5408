#include "worker_eval.h"

#include <filesystem>
#include <iostream>
#include <vector>

#include <fmt/format.h>

#include "base/run/answer_files.h"
#include "base/run/eval_folder.h"
#include "base/system/standard_output.h"
#include "base/text/printable.h"
#include "runtime/eval/report_files.h"
#include "runtime/eval/report_text.h"
#include "runtime/training/evaluation/eval_job.h"

namespace fleetrun {

namespace {

bool is_made(const std::string& job_file) {
  return std::filesystem::path(job_file).filename().string().starts_with(kEvalJobPrefix);
}

}  // namespace

void run_eval(const std::string& folder, const std::string& job_file, const job::ParsedJob& job,
              comm::World& world, ProgressPage& page) {
  const runtime::EvalReport report = runtime::eval_job(job.spec, world, page, std::cout);
  if (world.env.rank != 0) return;
  std::vector<NamedContent> files = runtime::files_of(report);
  if (is_made(job_file)) files.push_back({kEvalJobName, job.text});
  publish_eval_report(folder, files);
  const std::string text = fmt::format("{}\nreport: {}\n", describe(report), printable(folder));
  if (world.env.log_dir.empty()) return print_answer(text);
  write_answer(kEvalAnswer, world.log_dir(), to_json_lines(as_json(report)));
  write_answer(kEvalTables, world.log_dir(), std::string(kEvalTables.mark) + text);
}

}  // namespace fleetrun
