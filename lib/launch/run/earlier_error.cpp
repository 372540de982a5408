#include "launch/run/earlier_error.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "launch/evidence/last_exception.h"
#include "launch/evidence/log_cause.h"
#include "launch/evidence/lost_peer.h"
#include "launch/logs/last_lines.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kSearchedEnd = 64 * 1024;  // bytes
constexpr std::size_t kShownLines = 10;
constexpr std::string_view kTraceback = "Traceback";
constexpr std::string_view kCrashMessage = "Fatal Python error: ";
// As Python ends after an exception that nobody caught.
constexpr ExitStatus kUncaught = {.how = ExitStatus::How::exited, .value = 1};

// "KeyError: 'path' (train.py:8, in load)", also where the rank has lost peers while it handled that; "" if there are only lost peers.
std::string own_error(const LogCause& cause) {
  if (!may_tell_of_lost_peer(cause.what)) return describe(cause);
  return may_tell_of_lost_peer(cause.handled) ? "" : cause.handled;
}

}  // namespace

std::optional<EarlierError> find_earlier_error(const LastWords& words, const EarlierErrorSearch& search) {
  const auto& [script, log_of_failed, ranks_waited] = search;
  std::vector<LogOfRank> logs = words.logs_of_others();
  std::ranges::stable_sort(logs, std::greater(), &LogOfRank::silent);  // the oldest error is the first
  const std::int64_t last = logs.empty() ? 0 : logs.back().silent;
  std::vector<EarlierError> errors;
  for (const LogOfRank& of : logs) {
    const std::string text = read_log_end(of.end.log, kSearchedEnd, of.end.size);
    if (text.find(kTraceback) == std::string::npos && text.find(kCrashMessage) == std::string::npos) continue;
    const LogCause cause = find_log_cause(text, kUncaught, script);
    const std::string error = own_error(cause);
    const bool crashed = cause.is_crash_of_child;
    if ((cause.place.empty() && !crashed) || error.empty() || is_victim(text, script)) continue;
    const bool is_caught = crashed || of.ended || of.went_on || may_be_caught(text, script);
    const bool since_then_nothing =
        crashed && ranks_waited && std::chrono::nanoseconds(of.silent - last) <= kFreshError;
    if (std::chrono::nanoseconds(of.silent) > kFreshError && is_caught && !since_then_nothing) continue;
    if (log_of_failed.find(error.substr(0, error.rfind(" ("))) != std::string_view::npos) continue;
    const bool is_known = std::ranges::any_of(errors, [&](const EarlierError& known) {
      return known.rank == of.rank && known.exception == error;  // from its other log
    });
    if (is_known) continue;
    errors.push_back({.rank = of.rank,
                      .exception = error,
                      .log = of.end.log.path,
                      .last_lines = last_lines(text, kShownLines),
                      .written = of.written,
                      .may_be_caught = is_caught});
  }
  // What several ranks have written may be a warning of the start. An exception of one rank alone that nobody caught is more.
  for (const EarlierError& error : errors)
    if (!error.may_be_caught && std::ranges::count(errors, error.exception, &EarlierError::exception) == 1)
      return error;
  return errors.empty() ? std::nullopt : std::optional(errors.front());
}

}  // namespace fleetrun::launch
