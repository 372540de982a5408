#include "launch/evidence/lost_peer.h"

#include <algorithm>
#include <array>

#include "launch/evidence/log_lines.h"
#include "launch/evidence/traceback.h"

namespace fleetrun::launch {
namespace {

// Of the C library (errno), gloo (transport/tcp/pair.cc), PyTorch (TCPStore.cpp, ProcessGroupNCCL.cpp), NCCL (ncclGetErrorString), gRPC
// and JAX's coordination service.
constexpr std::array<std::string_view, 19> kSignsOfLoss = {"Connection closed by",
                                                           "onnection reset",
                                                           "Broken pipe",
                                                           "onnection refused",
                                                           "onnection abort",
                                                           "Transport endpoint is not connected",
                                                           "Connection was likely closed",
                                                           "Failed to recv",
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
                                                           "lost the connection"};
constexpr std::string_view kEndOfConnection =
    "EOFError";  // of multiprocessing; with a message it is of input()

}  // namespace

bool may_tell_of_lost_peer(std::string_view exception) {
  const auto has = [&](std::string_view sign) { return exception.find(sign) != std::string_view::npos; };
  return exception == kEndOfConnection || exception.starts_with("EOFError (") ||
         std::ranges::any_of(kSignsOfLoss, has);
}

std::optional<LogCause> find_lost_peer(std::string_view log_end) {
  const std::vector<Finding> tracebacks = find_tracebacks(read_log_lines(log_end));
  if (tracebacks.empty() || !may_tell_of_lost_peer(tracebacks.back().cause.what)) return std::nullopt;
  return tracebacks.back().cause;
}

}  // namespace fleetrun::launch
