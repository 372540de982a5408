#include "worker_tune.h"

#include <iostream>
#include <memory>
#include <utility>

#include "base/json/json_value.h"
#include "base/run/answer_files.h"
#include "base/run/tune_request.h"
#include "runtime/training/ranks/agreement.h"
#include "runtime/training/tuning/tune_job.h"

namespace fleetrun {

void run_tune(const std::string& request, const runtime::JobWith& job_with, comm::World& world,
              ProgressPage& page) {
  page.phase = Phase::loading;
  page.beat();
  const std::unique_ptr<runtime::Device> device = runtime::make_agreed_device(world);
  const runtime::TuneOutcome outcome =
      runtime::tune_job({job_with, world, *device, page}, parse_tune_request(request), std::cout);
  page.phase = Phase::finished;
  if (world.env.rank != 0 || world.env.log_dir.empty()) return;
  JsonValue result = JsonValue::object({{"written_by", "fleetrun tune"}});
  for (JsonMember& member : runtime::as_json(outcome.tuned).members)
    result.members.push_back(std::move(member));
  result.add("kept", outcome.kept);
  result.add("timed_steps", outcome.timed_steps);
  result.add("ranks", world.env.world_size);
  write_answer(kTuneAnswer, world.log_dir(), to_json(result));
}

}  // namespace fleetrun
