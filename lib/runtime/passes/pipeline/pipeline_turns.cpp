#include "runtime/passes/pipeline/pipeline_turns.h"

namespace fleetrun::runtime {
namespace {

// Leaves out transfers that the first or the last stage has nobody for.
class Turns {
 public:
  explicit Turns(const PipelinePlace& place) : place_(place) {}

  void add(Act act, int micro_batch) {
    const bool with_previous = act == Act::receive_values || act == Act::send_gradients;
    const bool with_next = act == Act::send_values || act == Act::receive_gradients;
    if ((with_previous && place_.is_first()) || (with_next && place_.is_last())) return;
    turns_.push_back({act, micro_batch});
  }
  void add_forward(int micro_batch) {
    add(Act::forward, micro_batch);
    add(Act::send_values, micro_batch);
  }
  void add_backward(int micro_batch) {
    add(Act::receive_gradients, micro_batch);
    add(Act::backward, micro_batch);
  }
  std::vector<Turn> take() { return std::move(turns_); }

 private:
  PipelinePlace place_;
  std::vector<Turn> turns_;
};

std::vector<Turn> forwards_then_backwards(const PipelinePlace& place, int count) {
  Turns turns(place);
  for (int i = 0; i < count; ++i) {
    turns.add(Act::receive_values, i);
    turns.add_forward(i);
  }
  for (int i = 0; i < count; ++i) {
    turns.add_backward(i);
    turns.add(Act::send_gradients, i);
  }
  return turns.take();
}

// After its first forward passes, a stage receives the values of the next micro-batch before it sends gradients: the stage before it
// sends those values before it receives these gradients.
std::vector<Turn> one_forward_one_backward(const PipelinePlace& place, int count) {
  const int lead = place.stages - 1 - place.stage;
  Turns turns(place);
  for (int i = 0; i < count + lead; ++i) {
    if (i < count && i <= lead) turns.add(Act::receive_values, i);
    if (i < count) turns.add_forward(i);
    const int back = i - lead;
    if (back < 0) continue;
    turns.add_backward(back);
    if (i + 1 < count) turns.add(Act::receive_values, i + 1);
    turns.add(Act::send_gradients, back);
  }
  return turns.take();
}

}  // namespace

std::vector<Turn> plan_turns(job::PipelineSchedule schedule, const PipelinePlace& place, int micro_batches) {
  return schedule == job::PipelineSchedule::forwards_then_backwards
             ? forwards_then_backwards(place, micro_batches)
             : one_forward_one_backward(place, micro_batches);
}

std::vector<Turn> plan_evaluation(const PipelinePlace& place) {
  Turns turns(place);
  turns.add(Act::receive_values, 0);
  turns.add_forward(0);
  return turns.take();
}

int communicator_for(Act act, const PipelinePlace& place) {
  const int to_next = place.is_first() ? 0 : 2;
  switch (act) {
    case Act::receive_values:
      return 0;
    case Act::send_gradients:
      return 1;
    case Act::send_values:
      return to_next;
    default:
      return to_next + 1;
  }
}

int communicator_of_stages(const PipelinePlace& place) {
  return (place.is_first() ? 0 : 2) + (place.is_last() ? 0 : 2);
}

int communicator_of_replicas(const PipelinePlace& place) { return communicator_of_stages(place) + 1; }

}  // namespace fleetrun::runtime
