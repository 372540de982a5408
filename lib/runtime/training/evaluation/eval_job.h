// `fleetrun eval` on one rank: what a trained model predicts for data.test.
#pragma once
#include <iosfwd>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "job/spec/job_spec.h"
#include "runtime/eval/eval_report.h"

namespace fleetrun::runtime {

// Evaluates model.pretrained on data.test. Every rank calls it; only rank 0 gets the predictions of all ranks, the others an empty report.
// Prints warnings about skipped samples to `out`, and keeps `page` up to date. Throws Error: config, data, missing, permission, io,
// temporary (a peer was lost), protocol (ranks disagree), numerics (the model has no numbers for an image).
EvalReport eval_job(const job::JobSpec& job, comm::World& world, ProgressPage& page, std::ostream& out);

}  // namespace fleetrun::runtime
