#include "launch/evidence/log_cause.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error/exit_codes.h"
#include "launch/evidence/aftermath.h"
#include "launch/evidence/children.h"
#include "launch/evidence/echoes.h"
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
constexpr std::size_t kWordsBetween =
    2;  // lines between the end of a script and the traceback of an exit handler
constexpr std::size_t kBuffered = 16 * 1024;  // bytes that may wait in the buffers of a program and a filter

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

class Judge {
 public:
  Judge(const LogLines& log, const ExitStatus& status, std::string_view script, std::size_t at_death)
      : status_(status), ending_(ending_of(status)) {
    // An exception that nobody caught, then a thread that nobody joined: C++ aborts while Python leaves.
    if (ending_ == kAbort &&
        log.text.find("terminate called without an active exception") != std::string::npos)
      ending_ |= kExit;
    findings_ = find_tracebacks(log);
    for (Finding& message : find_messages(log)) add_message(std::move(message));
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.first > b.first; });  // last one first
    weaken_echoes(findings_, log.lines,
                  {.script = script, .lines_at_death = at_death, .exit_code = status.exit_code()});
    if (crashed_while_python_left(log)) ending_ |= kExit;
    const bool may_be_uncaught = status.exit_code() == 1 || ending_ != kExit;
    note_traceback_after_end(log);
    if (may_be_uncaught) extend_last_message(log);
    last_words_ = last_words_begin(log, findings_, may_be_uncaught ? kLastWords : kFewLastWords);
  }

  LogCause decide() const {
    for (const Weight least : {Weight::last_words, Weight::clue, Weight::echo})
      for (const Finding& finding : findings_)
        if (finding.weight <= least && explains(finding)) return with_error_beside(finding);
    return {};
  }

  LogCause find_survived(const LogLines& log) const {
    for (const Finding& finding : findings_) {
      const bool was_last = finding.end >= log.lines.size();
      const std::size_t end = was_last ? log.text.size() : log.starts[finding.end];
      if (log.text.size() - end > kBuffered) return {};
      const bool nobody_caught = !finding.is_traceback() || finding.from_top;
      if (finding.weight <= Weight::last_words && nobody_caught && may_explain(finding)) return finding.cause;
    }
    return {};
  }

 private:
  void add_message(Finding message) {  // what an exception's own lines repeat says nothing new
    const bool repeated = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& other) {
      return message.first >= other.first && message.first < other.end;
    });
    if (!repeated) findings_.push_back(std::move(message));
  }

  // The traceback of an exception that nobody caught stands directly above what faulthandler says of the crash, and no stack has the top level
  // of the program any more.
  bool crashed_while_python_left(const LogLines& log) const {
    const auto crash = std::ranges::find_if(findings_, [](const Finding& finding) {
      return finding.cause.what.starts_with("Fatal Python error: ");
    });
    if (crash == findings_.end()) return false;
    const auto above = std::ranges::find_if(
        findings_, [&](const Finding& finding) { return finding.end <= crash->first && finding.from_top; });
    if (above == findings_.end() || above->endings == 0) return false;
    const auto line = [&](std::size_t number) {
      return log.lines.begin() + static_cast<std::ptrdiff_t>(number);
    };
    const auto is_top = [](const std::string& frame) { return frame.ends_with(" in <module>"); };
    return std::all_of(line(above->end), line(crash->first), is_chatter) &&
           std::none_of(line(crash->first), log.lines.end(), is_top);
  }

  // Of an exception that nobody caught: Python writes nothing after it, so the message goes on to the end of the log.
  void extend_last_message(const LogLines& log) {
    const auto last = std::find_if(findings_.begin(), findings_.end(), [](const Finding& finding) {
      return finding.from_top && finding.endings != 0;
    });
    if (last != findings_.end() && !worked_on(log, *last, kLastWords)) last->end = log.lines.size();
  }

  // The oldest finding before this one for which it holds. Null: there is none.
  template <typename Predicate>
  const Finding* oldest_before(const Finding& finding, Predicate holds) const {
    const auto found = std::find_if(findings_.rbegin(), findings_.rend(), [&](const Finding& other) {
      return other.first < finding.first && holds(other);
    });
    return found == findings_.rend() ? nullptr : &*found;
  }

  bool is_failed_child(const Finding& other) const {
    return other.writer != Writer::program && (other.weight <= Weight::last_words || is_crash(other)) &&
           explains(other);
  }

  // The child that failed first may be why the rank failed.
  const Finding* first_child_before(const Finding& finding) const {
    if (finding.writer != Writer::program) return nullptr;
    const bool names_crash = names_signal_of_loader(finding.cause);
    return oldest_before(finding, [&](const Finding& other) {
      return is_failed_child(other) && !(names_crash && is_crash(other));
    });
  }

  // If the finding says only that a process of the rank has ended, this returns why. Null: the finding says more, or the log has no reason.
  const Finding* end_of_child(const Finding& finding) const {
    if (!says_no_more_than_child_ended(finding.cause)) return nullptr;
    const Finding* const worker = oldest_before(finding, [this](const Finding& other) {
      return other.writer == Writer::worker && is_failed_child(other);
    });
    if (worker != nullptr) return worker;
    return first_child_before(finding) != nullptr
               ? nullptr
               : oldest_before(finding, [](const Finding& other) {
                   return is_crash(other) && other.writer != Writer::process;
                 });
  }

  // An exception that nobody seems to have caught, and then a traceback without a headline: of an exit handler or a thread, or a part of the
  // message of the exception.
  void note_traceback_after_end(const LogLines& log) {
    const auto end = std::ranges::find_if(findings_, [](const Finding& finding) {
      return finding.from_top && finding.endings != 0 && finding.writer == Writer::program &&
             finding.weight <= Weight::last_words;
    });
    if (end == findings_.end() || end->cause.what.ends_with(':')) return;  // it quotes another one
    std::size_t line = end->end;
    for (std::size_t words = 0; line < log.lines.size() && words <= kWordsBetween; ++line) {
      const auto after = std::ranges::find(findings_, line, &Finding::first);
      if (after != findings_.end()) {
        const bool quotes = !without_prefix(log.lines[line], after->prefix).starts_with("Traceback");
        if (after->is_traceback() && !after->from_top && !quotes) after_end_ = {&*end, &*after};
        return;
      }
      if (!log.lines[line].empty()) ++words;
    }
  }

  LogCause with_error_beside(const Finding& finding) const {
    LogCause cause = finding.cause;
    cause.is_crash_of_child = is_crash(finding) && finding.writer != Writer::program;
    const Finding* const child = first_child_before(finding);
    if (const Finding* const end = end_of_child(finding)) {
      cause = end->cause;
      cause.beside = fmt::format("then {}", describe(finding.cause));
    } else if (child != nullptr) {
      cause.beside = fmt::format("its {} failed before: {}", child->child.empty() ? "process" : child->child,
                                 describe(child->cause));
    } else if (after_end_.second == &finding) {
      cause.beside = fmt::format("right before it, the log has {}", describe(after_end_.first->cause));
    }
    return cause;
  }

  bool may_explain(const Finding& finding) const {
    if ((finding.endings & ending_) == 0) return false;
    return finding.code == 0 || ending_ != kExit || finding.code == status_.value;
  }

  bool explains(const Finding& finding) const {
    return may_explain(finding) && (finding.weight == Weight::certain || finding.end >= last_words_);
  }

  const ExitStatus& status_;
  unsigned ending_;
  std::size_t last_words_ = 0;  // the line with which they begin
  std::vector<Finding> findings_;
  // An exception that seems to have ended the program, and the traceback right after it. Null: there are none.
  std::pair<const Finding*, const Finding*> after_end_ = {};
};

void shorten_parts(LogCause& cause) {
  for (std::string* part :
       {&cause.what, &cause.place, &cause.from, &cause.root, &cause.handled, &cause.beside})
    *part = shorten(std::move(*part), kLongestPart);
}

}  // namespace

LogCause find_log_cause(std::string_view log_end, const ExitStatus& status, std::string_view script,
                        std::size_t late) {
  if (ending_of(status) == 0) return {};
  if (log_end.size() > kMostText) log_end.remove_prefix(log_end.size() - kMostText);
  const LogLines log = read_log_lines(log_end);
  const std::string_view at_death = log_end.substr(0, log_end.size() - std::min(late, log_end.size()));
  LogCause cause = Judge(log, status, script, read_log_lines(at_death).lines.size()).decide();
  shorten_parts(cause);
  cause.hint = hint_for(cause.what);
  return cause;
}

LogCause find_survived_error(std::string_view log_end, const ExitStatus& status, std::string_view script) {
  if (ending_of(status) == 0) return {};
  if (log_end.size() > kMostText) log_end.remove_prefix(log_end.size() - kMostText);
  const LogLines log = read_log_lines(log_end);
  LogCause cause = Judge(log, status, script, log.lines.size()).find_survived(log);
  shorten_parts(cause);
  return cause;
}

std::string describe(const LogCause& cause) {
  return cause.place.empty() ? cause.what : fmt::format("{} ({})", cause.what, cause.place);
}

}  // namespace fleetrun::launch
