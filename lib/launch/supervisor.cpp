#include "launch/supervisor.h"

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace fleetrun::launch {
namespace {

int spawn_exit_code(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return static_cast<int>(ErrorKind::not_found);
    case EACCES:
    case ENOEXEC:
    case EISDIR:
      return static_cast<int>(ErrorKind::not_executable);
    default:
      return static_cast<int>(ErrorKind::os);
  }
}

// Ended by what we sent, or with a code that means so.
bool obeyed(const ExitStatus& status) {
  return status.ok() || status.exit_code() == 128 + SIGTERM || status.exit_code() == 128 + SIGKILL;
}

}  // namespace

Supervisor::Supervisor(int ranks, SupervisorOptions options) : options_(options) {
  verdict_.ranks.resize(static_cast<std::size_t>(ranks));
}

bool Supervisor::done() const {
  return phase_ == Phase::given_up ||
         std::none_of(verdict_.ranks.begin(), verdict_.ranks.end(),
                      [](const RankVerdict& rank) { return rank.role == Role::running; });
}

Actions Supervisor::on(const Event& event, TimePoint now) {
  return std::visit([&](const auto& what) { return handle(what, now); }, event);
}

Actions Supervisor::handle(const WorkerExited& event, TimePoint now) {
  RankVerdict& rank = verdict_.ranks.at(static_cast<std::size_t>(event.rank));
  rank.status = event.status;
  rank.ended = now;
  if (phase_ != Phase::running) {
    rank.role = obeyed(event.status) ? Role::stopped : Role::failed_after;
    return {};
  }
  if (event.status.ok()) {
    rank.role = Role::finished;
    return {};
  }
  rank.role = Role::cause;
  verdict_.cause = event.status.how == ExitStatus::How::exited ? Cause::exited : Cause::killed;
  verdict_.rank = event.rank;
  verdict_.exit_code = event.status.exit_code();
  return stop(now);
}

Actions Supervisor::handle(const SpawnFailed& event, TimePoint now) {
  for (std::size_t i = static_cast<std::size_t>(event.rank); i < verdict_.ranks.size(); ++i)
    verdict_.ranks[i] = {.role = Role::never_started, .status = {}, .ended = now};
  if (phase_ != Phase::running) return {};
  verdict_.cause = Cause::spawn;
  verdict_.rank = event.rank;
  verdict_.spawn_error = event.error;
  verdict_.exit_code = spawn_exit_code(event.error);
  return stop(now);
}

Actions Supervisor::handle(const StopRequested& event, TimePoint now) {
  if (done()) return {};
  if (phase_ == Phase::running) {
    verdict_.cause = Cause::stopped;
    verdict_.signal = event.signal;
    verdict_.exit_code = 128 + event.signal;
    return stop(now);
  }
  return phase_ == Phase::stopping && event.signal == SIGINT ? kill(now) : Actions();
}

Actions Supervisor::handle(const FrontLost&, TimePoint now) {
  if (done()) return {};
  if (phase_ == Phase::running) {
    verdict_.cause = Cause::front_lost;
    verdict_.exit_code = 128 + SIGKILL;
  }
  return kill(now);
}

Actions Supervisor::handle(const Woke&, TimePoint now) {
  if (done() || phase_ == Phase::running || now < deadline_) return {};
  if (phase_ == Phase::stopping) return kill(now);
  phase_ = Phase::given_up;
  return {};
}

Actions Supervisor::stop(TimePoint now) {
  phase_ = Phase::stopping;
  deadline_ = now + options_.grace;
  Actions actions = for_each_running<Terminate>();
  if (!actions.empty()) actions.push_back(WakeAt{deadline_});
  return actions;
}

Actions Supervisor::kill(TimePoint now) {
  phase_ = Phase::killing;
  deadline_ = now + options_.kill_wait;
  Actions actions = for_each_running<Kill>();
  if (!actions.empty()) actions.push_back(WakeAt{deadline_});
  return actions;
}

template <typename Act>
Actions Supervisor::for_each_running() const {
  Actions actions;
  for (std::size_t i = 0; i < verdict_.ranks.size(); ++i)
    if (verdict_.ranks[i].role == Role::running) actions.push_back(Act{static_cast<int>(i)});
  return actions;
}

}  // namespace fleetrun::launch
