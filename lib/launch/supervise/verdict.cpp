#include "launch/supervise/verdict.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

#include "base/error/error.h"
#include "base/error/exit_codes.h"

namespace fleetrun::launch {

namespace {

template <typename Condition>
std::vector<int> numbers_of(const Verdict& verdict, const Condition& condition) {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < verdict.ranks.size(); ++i)
    if (condition(verdict.ranks[i])) ranks.push_back(verdict.number_of(static_cast<int>(i)));
  return ranks;
}

}  // namespace

std::vector<int> ranks_that(const Verdict& verdict, Role role) {
  return numbers_of(verdict, [role](const RankVerdict& rank) { return rank.role == role; });
}

bool is_still_there(const RankVerdict& rank) { return rank.role == Role::running || rank.leaves_processes; }

std::vector<int> ranks_still_there(const Verdict& verdict) { return numbers_of(verdict, is_still_there); }

std::vector<int> ranks_killed(const Verdict& verdict) {
  return numbers_of(verdict, [](const RankVerdict& rank) { return rank.killed; });
}

bool ends_without_failure(Cause cause) {
  return cause == Cause::elsewhere || cause == Cause::hung || cause == Cause::timed_out ||
         cause == Cause::early_exit;
}

void set_cause(Verdict& verdict, Cause cause, int code_of_event) {
  verdict.cause = cause;
  verdict.exit_code = facts_of(cause).exit_code.value_or(code_of_event);
}

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

// SIGTERM and SIGKILL follow the first signal.
bool obeyed(const ExitStatus& status, int stop_signal) {
  if (status.ok()) return true;
  const int signal = status.exit_code() - kSignalExitCode;
  return signal == stop_signal || signal == SIGTERM || signal == SIGKILL;
}

int first_finished(const Verdict& verdict) {
  const auto first = std::min_element(
      verdict.ranks.begin(), verdict.ranks.end(), [](const RankVerdict& a, const RankVerdict& b) {
        return a.role == Role::finished && (b.role != Role::finished || a.ended < b.ended);
      });
  return static_cast<int>(std::distance(verdict.ranks.begin(), first));
}

}  // namespace fleetrun::launch
