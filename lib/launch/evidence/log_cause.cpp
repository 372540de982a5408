#include "launch/evidence/log_cause.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "base/error/exit_codes.h"
#include "launch/evidence/aftermath.h"
#include "launch/evidence/finding.h"
#include "launch/evidence/log_lines.h"
#include "launch/evidence/recognisers.h"
#include "launch/evidence/traceback.h"
#include "launch/logs/last_lines.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostText = 256 * 1024;  // bytes: a traceback of 1,000 frames has 150 KiB
constexpr std::size_t kLongestPart = 300;      // bytes, of each part of the sentence
constexpr std::size_t kLastWords = 10;         // lines of a message; Python ends with 1 after an exception
constexpr std::size_t kFewLastWords = 3;       // after another code, the program itself chose its end

constexpr int kUncaughtInPython = 1;  // the exit code

int signal_of(const ExitStatus& status) {
  if (status.how == ExitStatus::How::signaled) return status.value;
  return status.value > kSignalExitCode && status.value <= kSignalExitCode + SIGSYS
             ? status.value - kSignalExitCode
             : 0;
}

unsigned ending_of(const ExitStatus& status) {
  switch (signal_of(status)) {
    case 0:
      return status.ok() ? 0U : static_cast<unsigned>(kExit);
    case SIGABRT:
      return kAbort;
    case SIGINT:
      return kInterrupt;
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
      return kCrash;
    default:
      return 0;
  }
}

struct Hint {
  std::string_view start, text;  // of the exception
};

constexpr std::array<Hint, 2> kHints = {{
    {"bdb.BdbQuit",
     "ranks do not read the terminal, so breakpoint() ends with BdbQuit: --interactive=RANK gives one rank the terminal"},
    {"EOFError: EOF when reading a line",
     "ranks do not read the terminal, so input() finds the end of the file: --interactive=RANK gives one rank the terminal"},
}};

std::string hint_for(const std::string& what) {
  for (const Hint& hint : kHints)
    if (what.starts_with(hint.start)) return std::string(hint.text);
  return "";
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

constexpr std::array<std::string_view, 6> kParentIsGone = {"EOFError",
                                                           "BrokenPipeError",
                                                           "ConnectionResetError",
                                                           "ConnectionRefusedError",
                                                           "ConnectionAbortedError",
                                                           "KeyboardInterrupt"};

// `before`: the line before the traceback, "Process SpawnProcess-2:".
bool is_child_without_parent(std::string_view before, const Finding& traceback) {
  before = without_prefix(before, traceback.prefix);
  const bool of_child = before.starts_with("Process ") && before.ends_with(':');
  const bool in_library = traceback.cause.place.find("/multiprocessing/") != std::string::npos ||
                          traceback.cause.what.starts_with("KeyboardInterrupt");
  return of_child && in_library && std::ranges::any_of(kParentIsGone, [&](std::string_view error) {
           return traceback.cause.what.starts_with(error);
         });
}

// "train.py", "./train.py" and "/me/train.py" name the script of the frame "/me/train.py".
bool is_script(std::string_view script, std::string_view file) {
  if (script.starts_with("./")) script.remove_prefix(2);
  const auto ends = [](std::string_view path, std::string_view end) {
    return path == end || (path.ends_with(end) && path[path.size() - end.size() - 1] == '/');
  };
  return !script.empty() && !file.empty() && (ends(file, script) || ends(script, file));
}

bool is_uncaught_in(std::string_view script, const Finding& traceback) {
  return traceback.from_top && is_script(script, traceback.file);
}

// In one of its frames, as when a profiler runs the script.
bool names_script(const std::vector<std::string>& lines, const Finding& traceback, std::string_view script) {
  const std::string frame = fmt::format("{}\", line ", file_name(script));
  return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(traceback.first),
                     lines.begin() + static_cast<std::ptrdiff_t>(std::min(traceback.end, lines.size())),
                     [&](const std::string& line) { return line.find(frame) != std::string::npos; });
}

class Judge {
 public:
  Judge(const LogLines& log, const ExitStatus& status, std::string_view script)
      : status_(status), ending_(ending_of(status)) {
    // An exception that nobody caught, then a thread that nobody joined: C++ aborts while Python leaves.
    if (ending_ == kAbort &&
        log.text.find("terminate called without an active exception") != std::string::npos)
      ending_ |= kExit;
    findings_ = find_tracebacks(log);
    for (Finding& message : find_messages(log)) add_message(std::move(message));
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.first > b.first; });  // last one first
    weaken_what_follows(log.lines, script);
    const bool may_be_uncaught = status.exit_code() == 1 || ending_ != kExit;
    if (may_be_uncaught) extend_last_message(log.lines);
    last_words_ = last_words_begin(log.lines, findings_, may_be_uncaught ? kLastWords : kFewLastWords);
  }

  LogCause decide() const {
    for (const Weight least : {Weight::last_words, Weight::clue, Weight::echo})
      for (const Finding& finding : findings_)
        if (finding.weight <= least && explains(finding)) return finding.cause;
    return {};
  }

 private:
  // Other processes may fail because the rank ends: a process of Python's multiprocessing that loses its parent, or a program that the
  // script has started. They may print their tracebacks while Python still leaves the script.
  void weaken_what_follows(const std::vector<std::string>& lines, std::string_view script) {
    std::size_t end_of_script = 0;
    for (const Finding& finding : findings_)
      if (finding.endings != 0 && is_uncaught_in(script, finding))
        end_of_script = std::max(end_of_script, finding.end);
    const std::size_t work = end_of_script == 0 ? 0 : first_work_after(lines, end_of_script);
    for (Finding& finding : findings_) {
      const bool of_other =
          (finding.from_top || !finding.has_header) && !names_script(lines, finding, script);
      const bool of_child = finding.first > 0 && is_child_without_parent(lines[finding.first - 1], finding);
      if (of_child) finding.code = kUncaughtInPython;
      const bool follows = finding.first >= end_of_script && finding.first < work && of_other;
      if (of_child || follows) finding.weight = Weight::echo;
    }
  }

  // The first line from there on that is in no traceback, and not empty: somebody has worked.
  std::size_t first_work_after(const std::vector<std::string>& lines, std::size_t start) const {
    std::vector<bool> is_found(lines.size());
    for (const Finding& finding : findings_)
      for (std::size_t i = finding.first; i < std::min(finding.end, lines.size()); ++i) is_found[i] = true;
    std::size_t line = start;
    while (line < lines.size() && (is_found[line] || lines[line].empty())) ++line;
    return line;
  }

  void add_message(Finding message) {  // what an exception's own lines repeat says nothing new
    const bool repeated = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& other) {
      return message.first >= other.first && message.first < other.end;
    });
    if (!repeated) findings_.push_back(std::move(message));
  }

  // Of an exception that nobody caught: Python writes nothing after it, so the message goes on to the end of the log.
  void extend_last_message(const std::vector<std::string>& lines) {
    const auto last = std::find_if(findings_.begin(), findings_.end(), [](const Finding& finding) {
      return finding.from_top && finding.endings != 0;
    });
    if (last != findings_.end() && !worked_on(lines, *last, kLastWords)) last->end = lines.size();
  }

  bool explains(const Finding& finding) const {
    if ((finding.endings & ending_) == 0) return false;
    if (finding.code != 0 && ending_ == kExit && finding.code != status_.value) return false;
    return finding.weight == Weight::certain || finding.end >= last_words_;
  }

  const ExitStatus& status_;
  unsigned ending_;
  std::size_t last_words_ = 0;  // the line with which they begin
  std::vector<Finding> findings_;
};

}  // namespace

LogCause find_log_cause(std::string_view log_end, const ExitStatus& status, std::string_view script) {
  if (ending_of(status) == 0) return {};
  if (log_end.size() > kMostText) log_end.remove_prefix(log_end.size() - kMostText);
  const LogLines log = read_log_lines(log_end);
  LogCause cause = Judge(log, status, script).decide();
  for (std::string* part : {&cause.what, &cause.place, &cause.from})
    *part = shorten(std::move(*part), kLongestPart);
  cause.hint = hint_for(cause.what);
  return cause;
}

std::string script_of(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    if (word == "-m" || word == "-c" || word.find(' ') != std::string::npos) break;
    if (word.ends_with(".py")) return word;
  }
  return "";
}

std::string describe(const LogCause& cause) {
  return cause.place.empty() ? cause.what : fmt::format("{} ({})", cause.what, cause.place);
}

}  // namespace fleetrun::launch
