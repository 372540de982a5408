// Times and events for tests of the Supervisor.
#pragma once
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch::supervisor_events {

inline TimePoint at(Clock::duration time) { return TimePoint(time); }
inline ExitStatus exited(int code) { return {ExitStatus::How::exited, code}; }
inline ExitStatus killed_by(int signal) { return {ExitStatus::How::signaled, signal}; }
inline WorkerExited exit_of(int rank, ExitStatus status) { return {.rank = rank, .status = status}; }

}  // namespace fleetrun::launch::supervisor_events
