// Whether the data sets and other input files of a job are there, before anything is started.
#pragma once
#include "job/spec/job_spec.h"

namespace fleetrun::job {

// Throws one Error that has a line for each problem, "data.train.path: PATH: what was found, what was
// wanted". Its kind is that of the worst: missing, else permission, else data (an empty folder) or config
// (too few classes).
void check_inputs(const JobSpec& spec);

}  // namespace fleetrun::job
