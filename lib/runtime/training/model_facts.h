// What a model has to know besides the job: the answers of the data set, held against what the job says.
#pragma once
#include "job/job_spec.h"
#include "runtime/data/data_set.h"
#include "runtime/models/model.h"

namespace fleetrun::runtime {

// Throws Error(config) when model.input_shape or model.class_dim contradict the data set.
ModelFacts resolve_model_facts(const job::ModelSpec& model, const DataSet& train);

// The same before training: the data set is opened only when the job leaves one of the two open.
ModelFacts resolve_model_facts(const job::JobSpec& job);

}  // namespace fleetrun::runtime
