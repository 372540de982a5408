// The examination, as the first node leads it: asks all nodes, and collects their answers.
#pragma once
#include <functional>
#include <string>

#include "launch/doctor/answer_probe.h"
#include "launch/doctor/examination.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/node_session.h"

namespace fleetrun::launch {

struct ExaminationLimits {
  Clock::duration waited;  // for the message about a node that has not joined
  std::string waited_by;   // the flag that says how long
  TimePoint deadline;      // then nothing is measured again
};
using DoctorSays = std::function<void(const std::string& line)>;

// Call it after join(), on the first node.
Examination examine_nodes(EventLoop& loop, NodeSession& session, const ExaminationLimits& limits,
                          const DoctorSays& say);

// Tells the other nodes how it ended.
void tell_nodes(EventLoop& loop, NodeSession& session, const DoctorsWord& word);

}  // namespace fleetrun::launch
