#include "launch/evidence/children.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include <fmt/format.h>
#include <re2/re2.h>

namespace fleetrun::launch {
namespace {

// As of "terminate called ...": its what(), "Fatal Python error: Aborted", an empty line, and the headline of the stack.
constexpr std::size_t kLinesBeforeStack = 6;

// "/home/me/train.py:12, in main" of a line of faulthandler; "" of other lines.
std::string place_in_stack(const std::string& line) {
  static const re2::RE2 pattern(R"re(  File "([^"]+)", line (\d+) in (\S+)$)re");
  std::string file, number, function;
  if (!re2::RE2::PartialMatch(line, pattern, &file, &number, &function)) return "";
  return fmt::format("{}:{}, in {}", file, number, function);
}

// The inner frames come first. So the frames of a pool come before those of multiprocessing, and tell a worker from another process.
Writer writer_of_crash(const LogLines& log, const Finding& message) {
  const auto place_at = [&](std::size_t line) {
    return line < log.lines.size() ? place_in_stack(log.lines[line]) : "";
  };
  std::size_t line = message.end - 1;
  while (line < message.end + kLinesBeforeStack && place_at(line).empty()) ++line;
  for (; !place_at(line).empty(); ++line)
    if (const Writer writer = writer_in_frame(place_at(line)); writer != Writer::program) return writer;
  return Writer::program;
}

}  // namespace

Writer writer_in_frame(std::string_view place) {
  struct Frame {
    std::string_view file, function;
    Writer writer;
  };
  constexpr std::array<Frame, 5> kFrames = {{
      {"/multiprocessing/process.py:", ", in _bootstrap", Writer::process},
      {"/multiprocessing/spawn.py:", ", in spawn_main", Writer::worker},
      {"/concurrent/futures/process.py:", ", in _process_worker", Writer::worker},
      {"/loky/process_executor.py:", ", in _process_worker", Writer::worker},
      {"/torch/utils/data/_utils/worker.py:", ", in _worker_loop", Writer::worker},
  }};
  const auto found = std::ranges::find_if(kFrames, [&](const Frame& frame) {
    return place.find(frame.file) != std::string_view::npos && place.ends_with(frame.function);
  });
  return found == kFrames.end() ? Writer::program : found->writer;
}

void note_crashed_process(const LogLines& log, Finding& message) {
  const bool is_of_loader = message.cause.what.find(" encountered in worker.") != std::string::npos;
  message.writer = is_of_loader ? Writer::worker : writer_of_crash(log, message);
  if (is_of_loader) message.child = "DataLoader worker";
}

bool is_crash(const Finding& finding) {
  if (finding.is_traceback()) return false;
  const bool aborts = (finding.endings & kAbort) != 0 && finding.weight <= Weight::last_words;
  return aborts || (finding.endings & kCrash) != 0;
}

bool is_about_a_child(std::string_view exception) {
  return exception.find("ChildFailedError") != std::string_view::npos ||
         exception.find("CalledProcessError") != std::string_view::npos;
}

bool names_signal_of_loader(const LogCause& cause) {
  const auto names = [](std::string_view exception) {
    const auto worker = exception.find("DataLoader worker (pid");
    return worker != std::string_view::npos &&
           exception.find("is killed by signal", worker) != std::string_view::npos;
  };
  return names(cause.what) || names(cause.from);
}

bool says_no_more_than_child_ended(const LogCause& cause) {
  const std::string_view name = std::string_view(cause.what).substr(0, cause.what.find(": "));
  if (name.ends_with("BrokenProcessPool")) return cause.from.empty();
  return cause.what.starts_with("RuntimeError: DataLoader worker (pid") &&
         cause.what.find("exited unexpectedly") != std::string::npos && !names_signal_of_loader(cause);
}

}  // namespace fleetrun::launch
