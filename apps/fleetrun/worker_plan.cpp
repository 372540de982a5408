#include "worker_plan.h"

#include "base/error/error.h"
#include "base/run/plan_request.h"
#include "base/system/standard_output.h"
#include "job/parse_job.h"
#include "job/spec/settle_strategy.h"
#include "runtime/compile/build_program.h"
#include "runtime/plan/layouts.h"
#include "runtime/training/setup/model_facts.h"

namespace fleetrun {

void run_plan(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) throw Error(ErrorKind::usage, "wanted fleetrun-worker --plan REQUEST JOB.json");
  const PlanRequest request = parse_plan_request(arguments[0]);
  job::JobSpec job = job::parse_job_file(arguments[1], {arguments.begin() + 2, arguments.end()}).spec;
  const int ranks = request.hosts * request.gpus;
  job.strategy.sharding = job.strategy.pipeline = false;  // the layouts are compared with data parallelism
  job.strategy = job::settle_strategy(job.strategy, {ranks, request.gpus, true}).strategy;
  const runtime::Program program = runtime::build_training_program(job, runtime::resolve_model_facts(job),
                                                                   runtime::all_ops(), {.world_size = ranks});
  const runtime::StepCosts costs = runtime::step_costs(program, runtime::all_ops());
  print_answer(describe(plan_layouts(costs, job.data.batch_size, request), request));
}

}  // namespace fleetrun
