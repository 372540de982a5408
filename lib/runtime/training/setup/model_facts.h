// What a model has to know besides the job: facts of the data set, checked against the job.
#pragma once
#include "job/spec/job_spec.h"
#include "runtime/checkpoint/model_card.h"
#include "runtime/data/formats/data_set.h"
#include "runtime/models/model.h"

namespace fleetrun::runtime {

// Throws Error(config) when model.input_shape or model.class_dim contradict the data set.
ModelFacts resolve_model_facts(const job::ModelSpec& model, const DataSet& train);

// The same before training. Opens the data set only if the job leaves one of the two keys open.
ModelFacts resolve_model_facts(const job::JobSpec& job);

// What a model file of a job that has not trained says about the model. Class names are those of the data set; a job that sets both keys needs
// no data set, and if it cannot be opened, the classes have no names.
ModelCard model_card_of(const job::JobSpec& job);

}  // namespace fleetrun::runtime
