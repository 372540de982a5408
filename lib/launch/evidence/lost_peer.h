// Errors of a process that has lost the connection to another one. The log of the other process says more.
#pragma once
#include <chrono>
#include <optional>
#include <string_view>

#include "launch/evidence/log_cause.h"

namespace fleetrun::launch {

// For so long an exception that a process may have caught and printed counts as the cause of a connection that another process loses.
constexpr auto kFreshError = std::chrono::seconds(5);

// "RuntimeError: ... Connection closed by peer", "EOFError". The process may have met its peer's end, or a network that does not work.
bool may_tell_of_lost_peer(std::string_view exception);

// The last traceback of the log that may have ended the process, if its message, which may have several lines, tells of a lost peer, and the
// process did not work on after it.
std::optional<LogCause> find_lost_peer(std::string_view log_end, std::string_view script);

// Whether the last exception, which nobody caught, or the first one of its chain, tells of a lost peer, and is not a consequence of another
// error: the process is a victim.
bool is_victim(std::string_view log_end, std::string_view script);

// Whether a process that ends so may end because it has lost a peer: with a code of its own, or by SIGABRT, also below a shell.
bool may_end_by_lost_peer(const ExitStatus& status);

// Whether `cause`, which find_log_cause() has found, is the last exception, nobody caught it, and it does not tell of a lost peer. What
// destructors and threads then say about lost connections is a consequence.
bool names_own_error(std::string_view log_end, std::string_view script, std::string_view cause);

// Whether what a process has written last tells of a lost peer, in whatever form, and the process did not work on after it. One that was
// aborted may have written stacks after it.
bool ends_with_lost_peer(std::string_view log_end, const ExitStatus& status);

}  // namespace fleetrun::launch
