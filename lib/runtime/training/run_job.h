// A whole job on one rank: data, model, training, evaluation.
#pragma once
#include <iosfwd>
#include <memory>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "job/spec/job_spec.h"
#include "runtime/kernels/device.h"
#include "runtime/observe/train_report.h"

namespace fleetrun::runtime {

// Rank 0 writes the trained weights to model.safetensors in output.dir, and prints where they are.
// Prints progress to `out` (rank 0 prints the lines for the whole run), and keeps `page` up to date.
// Throws Error: data, config, create, io, temporary (a peer was lost), protocol (ranks disagree), numerics (loss is
// NaN), diverged.
// `device`: what make_agreed_device() returned; null: nobody has called it.
TrainReport run_job(const job::JobSpec& job, comm::World& world, ProgressPage& page, std::ostream& out,
                    std::unique_ptr<Device> device = nullptr);

}  // namespace fleetrun::runtime
