#include "worker_eval.h"

#include <iostream>

#include <fmt/format.h>

#include "base/run/answer_files.h"
#include "base/system/standard_output.h"
#include "base/text/printable.h"
#include "runtime/eval/report_files.h"
#include "runtime/eval/report_text.h"
#include "runtime/training/evaluation/eval_job.h"

namespace fleetrun {

void run_eval(const std::string& folder, const job::JobSpec& job, comm::World& world, ProgressPage& page) {
  const runtime::EvalReport report = runtime::eval_job(job, world, page, std::cout);
  if (world.env.rank != 0) return;
  runtime::write_report(folder, report);
  const std::string text = fmt::format("{}\nreport: {}\n", describe(report), printable(folder));
  if (world.env.log_dir.empty()) return print_answer(text);
  write_answer(kEvalAnswer, world.env.log_dir, to_json_lines(as_json(report)));
  write_answer(kEvalTables, world.env.log_dir, std::string(kEvalTables.mark) + text);
}

}  // namespace fleetrun
