// The program of one rank of a pipeline: the ops of its stage for each micro-batch, with the transfers from and to its neighbours.
#pragma once
#include <string>

#include "job/spec/job_spec.h"
#include "runtime/graph/program.h"
#include "runtime/passes/pipeline/pipeline_turns.h"

namespace fleetrun::runtime {

struct StagePlan {
  PipelinePlace place;
  int micro_batches = 1;
  job::PipelineSchedule schedule = job::PipelineSchedule::one_forward_one_backward;
};

// What a value of a program is called for one of several micro-batches: "image.m2"; the only one has the plain name.
std::string name_in_micro_batch(const std::string& name, int micro_batch, int micro_batches);

// `whole` is for a micro-batch, and its ops have stages (assign_stages.h). Stage 1 of 2, with 2 micro-batches:
//
//   fc x=image w=a.w -> y=a {owner=0} forward              recv -> x=a.m0
//   fc x=a w=b.w -> y=b {owner=1} forward             =>   fc x=a.m0 w=b.w -> y=b.m0 forward
//   ...                                                    ...  backward
//   sgd param=b.w grad=b.w@GRAD {owner=1} optimize         recv -> x=a.m1
//                                                          send x=a@GRAD.m0
//                                                          ...
//                                                          elementwise_add x=b.w@GRAD.m0 y=b.w@GRAD.m1 -> sum=b.w@GRAD backward
//                                                          sgd param=b.w grad=b.w@GRAD optimize
//
// The gradient of the loss starts as 1/micro-batches, so that the sums are means. Ops wait for the op before them. A stage
// receives only when its turn has come: when an op fails, no transfer from a stage that waits for this one is under way.
Program stage_program(const Program& whole, const StagePlan& plan);

// The same for an evaluation, of one micro-batch.
Program evaluation_stage(const Program& whole, const PipelinePlace& place);

}  // namespace fleetrun::runtime
