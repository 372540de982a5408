#include "launch/evidence/lost_peer.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "base/error/exit_codes.h"
#include "launch/evidence/aftermath.h"
#include "launch/evidence/last_exception.h"
#include "launch/evidence/log_lines.h"

namespace fleetrun::launch {
namespace {

// Of the C library (errno), gloo (transport/tcp), PyTorch (TCPStore.cpp, socket.cpp, ProcessGroupGloo.cpp, ProcessGroupNCCL.cpp), NCCL
// (ncclGetErrorString, socket.cc, net_ib.cc, proxy.cc), gRPC, JAX's coordination service, Horovod, TensorFlow, PaddlePaddle, Python's
// asyncio, and ranks of the embedded runtime that share memory (SharedMeeting). Not the words of a rank for which another one has waited
// too long: it was late itself.
constexpr std::array<std::string_view, 45> kSignsOfLoss = {"Connection closed by",
                                                           "onnection reset",
                                                           "Broken pipe",
                                                           "onnection refused",
                                                           "onnection abort",
                                                           "Transport endpoint is not connected",
                                                           "Connection was likely closed",
                                                           "ailed to recv",
                                                           "Socket Timeout",
                                                           "Timed out waiting",
                                                           "for recv operation to complete",
                                                           "for send operation to complete",
                                                           "ncclRemoteError",
                                                           "remote process exited",
                                                           "NCCL communicator was aborted",
                                                           "collective operation timeout",
                                                           "Socket closed",
                                                           "heartbeat timeout",
                                                           "lost the connection",
                                                           "onnection timed out",
                                                           "client socket has timed out",
                                                           "waiting for clients",
                                                           "wait timeout after",
                                                           "Application timeout caused pair closure",
                                                           "monitoredBarrier",
                                                           "connectFullMesh failed",
                                                           "Proxy Call to rank",
                                                           "Got completion from peer",
                                                           "Watchdog caught collective",
                                                           "watchdog hang",
                                                           "Horovod has been shut down",
                                                           "Collective ops is aborted",
                                                           "Timed out initializing process group",
                                                           "Barrier timed out",
                                                           "GetKeyValue() timed out",
                                                           "client socket has failed to connect",
                                                           "Remote end closed connection",
                                                           "IncompleteReadError",
                                                           "TimeoutError: timed out",
                                                           "TCP receive error",
                                                           "TCP send error",
                                                           "(its process has ended)",
                                                           "(it has left)",
                                                           "(so did rank ",
                                                           "Cannot write to closing transport"};
// Python's classes. They count only in an exception, because other lines of a log may name a class without an error.
constexpr std::array<std::string_view, 3> kClassesOfLoss = {"ConnectionResetError", "ConnectionAbortedError",
                                                            "BrokenPipeError"};
constexpr std::size_t kAbortWords = 8 * 1024;  // bytes: of an abort, with its stack
constexpr std::size_t kExitWords = 2 * 1024;   // bytes: "error: Connection closed by peer", and a good-bye
constexpr std::size_t kLinesBefore = 3;        // an exception: "all_reduce failed: Connection closed by peer"
constexpr std::size_t kMessageLines = 40;      // of a message
constexpr std::size_t kSignsOfLife = 10;       // lines that may be of a message, too
constexpr std::size_t kComparedPart = 200;     // bytes of an exception, which a cause may shorten
constexpr std::string_view kEndOfConnection =
    "EOFError";  // of multiprocessing; with a message it is of input()

bool is_abort(const ExitStatus& status) { return status.exit_code() == kSignalExitCode + SIGABRT; }

bool has_sign(std::string_view text) {
  return std::ranges::any_of(
      kSignsOfLoss, [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; });
}

// The lines below that of the exception are its message, too, because Python ends after it.
bool tells_of_lost_peer(const LastException& last) {
  const LogLines& log = last.log;
  const Finding& traceback = *last.traceback;
  if (may_tell_of_lost_peer(traceback.cause.what) || has_sign(traceback.cause.from) ||
      may_tell_of_lost_peer(traceback.cause.root))
    return true;
  const std::string_view name =
      std::string_view(traceback.cause.what).substr(0, traceback.cause.what.find(':'));
  std::size_t line = std::min(traceback.end, log.lines.size());
  while (line > traceback.first && !without_prefix(log.lines[line - 1], traceback.prefix).starts_with(name))
    --line;
  const std::size_t end = std::min(line + kMessageLines, last.end_of_message());
  for (; line < end; ++line)
    if (has_sign(log.lines[line])) return true;
  return false;
}

}  // namespace

bool may_tell_of_lost_peer(std::string_view exception) {
  const auto has_class = [&](std::string_view name) {
    return exception.find(name) != std::string_view::npos;
  };
  return exception == kEndOfConnection || exception.starts_with("EOFError (") ||
         std::ranges::any_of(kClassesOfLoss, has_class) || has_sign(exception);
}

std::optional<LogCause> find_lost_peer(std::string_view log_end, std::string_view script) {
  const LastException last(log_end, script);
  if (last.traceback == nullptr || !tells_of_lost_peer(last) ||
      worked_on(last.log, *last.traceback, kSignsOfLife))
    return std::nullopt;
  return last.traceback->cause;
}

bool is_victim(std::string_view log_end, std::string_view script) {
  const LastException last(log_end, script);
  if (last.traceback == nullptr || !last.traceback->from_top) return false;
  const std::string& root = last.traceback->cause.root;
  return tells_of_lost_peer(last) && (root.empty() || may_tell_of_lost_peer(root));
}

bool names_own_error(std::string_view log_end, std::string_view script, std::string_view cause) {
  const LastException last(log_end, script);
  if (last.traceback == nullptr || cause.empty() || tells_of_lost_peer(last)) return false;
  if (last.line_before_has(has_sign, kLinesBefore))
    return false;  // the exception may only say "training stopped"
  const bool nobody_caught =
      last.traceback->from_top || !last.traceback->has_header;  // threads wrote in between
  return nobody_caught && std::string_view(last.traceback->cause.what).substr(0, kComparedPart) ==
                              cause.substr(0, kComparedPart);
}

bool may_end_by_lost_peer(const ExitStatus& status) {
  return is_abort(status) || (status.how == ExitStatus::How::exited && status.value <= kSignalExitCode);
}

bool ends_with_lost_peer(std::string_view log_end, const ExitStatus& status) {
  const std::size_t bytes = is_abort(status) ? kAbortWords : kExitWords;
  const LogLines log = read_log_lines(log_end.substr(log_end.size() - std::min(log_end.size(), bytes)));
  for (std::size_t line = log.lines.size(); line > 0; --line)
    if (has_sign(log.lines[line - 1])) return !worked_on(log, {.first = line - 1, .end = line}, kSignsOfLife);
  return false;
}

}  // namespace fleetrun::launch
