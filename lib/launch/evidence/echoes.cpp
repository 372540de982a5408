#include "launch/evidence/echoes.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "launch/evidence/aftermath.h"
#include "launch/evidence/log_lines.h"
#include "launch/evidence/traceback.h"

namespace fleetrun::launch {
namespace {

constexpr int kUncaughtInPython = 1;  // the exit code

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// A missing file is the socket of a Manager only where this connects to it; shared memory of that name may be missing for another reason.
constexpr std::string_view kMissingSocket = "FileNotFoundError",
                           kConnection = "/multiprocessing/connection.py:";
constexpr std::array<std::string_view, 6> kParentIsGone = {"EOFError",
                                                           "BrokenPipeError",
                                                           "ConnectionResetError",
                                                           "ConnectionRefusedError",
                                                           "ConnectionAbortedError",
                                                           "KeyboardInterrupt"};

// In front of a traceback that is not that of the script, by Python and asyncio. Some of these headlines have two or three lines.
bool is_headline(std::string_view line) {
  constexpr std::array<std::string_view, 9> kHeadlines = {"Exception in thread ",
                                                          "Exception ignored ",
                                                          "--- Logging error ---",
                                                          "Error in atexit._run_exitfuncs",
                                                          "Task exception was never retrieved",
                                                          "future: <",
                                                          "Fatal error on ",
                                                          "protocol: <",
                                                          "transport: <"};
  return !child_in_headline(line).empty() || std::ranges::any_of(kHeadlines, [&](std::string_view headline) {
    return line.starts_with(headline);
  });
}

bool is_child_without_parent(const Finding& traceback) {
  const bool in_library = traceback.cause.place.find("/multiprocessing/") != std::string::npos ||
                          traceback.cause.what.starts_with("KeyboardInterrupt");
  if (traceback.child.empty() || !in_library) return false;
  const auto starts_with = [&](std::string_view error) { return traceback.cause.what.starts_with(error); };
  return std::ranges::any_of(kParentIsGone, starts_with) ||
         (starts_with(kMissingSocket) && traceback.cause.place.find(kConnection) != std::string::npos);
}

// "train.py", "./train.py" and "/me/train.py" name the script of the frame "/me/train.py".
bool is_script(std::string_view script, std::string_view file) {
  if (script.starts_with("./")) script.remove_prefix(2);
  const auto ends = [](std::string_view path, std::string_view end) {
    return path == end || (path.ends_with(end) && path[path.size() - end.size() - 1] == '/');
  };
  return !script.empty() && !file.empty() && (ends(file, script) || ends(script, file));
}

// In one of its frames, as when a profiler or `-m` runs the file.
bool names_file(const std::vector<std::string>& lines, const Finding& traceback, std::string_view name) {
  const std::string end = fmt::format("{}\", line ", name);
  return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(traceback.first),
                     lines.begin() + static_cast<std::ptrdiff_t>(std::min(traceback.end, lines.size())),
                     [&](const std::string& line) {
                       return line.find("/" + end) != std::string::npos ||
                              line.find("\"" + end) != std::string::npos;
                     });
}

bool is_run_as_module(const Finding& traceback) {
  return traceback.file == "<frozen runpy>" || file_name(traceback.file) == "runpy.py";
}

// "pk/train.py" of `-m pk.train` is "pk/train/__main__.py" if that is a package.
std::string main_of_package(std::string_view script) {
  return std::string(script.substr(0, script.rfind('.'))) + "/__main__.py";
}

bool is_frame(std::string_view line) { return !place_in_frame(line).empty(); }

constexpr std::string_view kStart = "Traceback (most recent call last)";

// Which lines are left of tracebacks that several processes wrote at the same time, in pieces: "  File ...", the line below it, "^^^^",
// "ValueError: x", indented lines behind such lines, and one in front.
std::vector<bool> find_pieces_of_tracebacks(const std::vector<std::string>& lines) {
  std::vector<bool> pieces(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const bool follows_piece = i > 0 && pieces[i - 1] && !is_bare_exception(lines[i - 1]);
    pieces[i] = is_frame(line) || (i > 0 && is_frame(lines[i - 1])) || line.find("^^") != std::string::npos ||
                line.find_first_not_of(" \t^~") == std::string::npos || line.starts_with(kStart) ||
                is_bare_exception(line) || (follows_piece && line.starts_with(' '));
  }
  const std::vector<bool> sure = pieces;
  for (std::size_t i = 1; i < lines.size(); ++i)
    if (sure[i] && !lines[i].starts_with(kStart) && lines[i - 1].starts_with(' ')) pieces[i - 1] = true;
  return pieces;
}

constexpr std::size_t kComplaints = 2;  // of a program before it fails

class Echoes {
 public:
  Echoes(const std::vector<Finding>& findings, const std::vector<std::string>& lines, const EndOfRank& end)
      : lines_(lines), end_(end), is_told_(lines.size()) {
    for (const Finding& finding : findings) {
      if (finding.endings == 0 || !finding.from_top) continue;
      if (!is_of_script(finding)) continue;
      if (finding.end > end_of_script_) script_ = &finding;
      end_of_script_ = std::max(end_of_script_, finding.end);
      if (finding.end <= end.lines_at_death) last_before_death_ = std::max(last_before_death_, finding.end);
    }
    const std::vector<bool> pieces = find_pieces_of_tracebacks(lines);
    for (std::size_t i = 0; i < lines.size(); ++i)
      is_told_[i] = pieces[i] || lines[i].empty() || is_headline(lines[i]);
    for (const Finding& finding : findings) {
      for (std::size_t i = finding.first; i < std::min(finding.end, lines.size()); ++i) is_told_[i] = true;
      if (finding.first > 0 && is_headline(without_prefix(lines[finding.first - 1], finding.prefix)))
        is_told_[finding.first - 1] = true;
    }
    if (end_of_script_ != 0) work_ = first_work_after(end_of_script_, is_complaint, kComplaints);
    if (last_before_death_ != 0)
      worked_ = first_work_after(last_before_death_, is_chatter, lines.size()) < end.lines_at_death;
  }

  bool contain(const Finding& finding) const {
    if (finding.from_top || !finding.has_header)
      return (follows_at_once(finding) && !names_script(finding)) || is_late(finding);
    return end_.exit_code == kUncaughtInPython && finding.is_traceback() && follows_at_once(finding) &&
           is_aftermath(finding);
  }

 private:
  bool is_of_script(const Finding& traceback) const {
    return is_script(end_.script, traceback.file) || (is_run_as_module(traceback) && names_script(traceback));
  }

  bool names_script(const Finding& traceback) const {
    return !end_.script.empty() && (names_file(lines_, traceback, file_name(end_.script)) ||
                                    names_file(lines_, traceback, main_of_package(end_.script)));
  }

  // Of an exit handler, a thread or a child, which somebody has caught and reported. A traceback below the exception's own line is a part of
  // its message.
  bool is_aftermath(const Finding& finding) const {
    std::size_t line = finding.first;
    while (line > 0 && lines_[line - 1].empty()) --line;
    if (line == 0) return false;
    if (!finding.child.empty()) return script_->weight == Weight::last_words;  // else the child may be why
    const std::string_view before = without_prefix(lines_[line - 1], finding.prefix);
    return (is_headline(before) || is_complaint(before)) && !went_on(finding);
  }

  // A function that stands below the line where the script seems to have ended: it was not defined by then.
  bool went_on(const Finding& finding) const {
    const std::vector<std::size_t> ended = lines_in_script(*script_), later = lines_in_script(finding);
    return !ended.empty() &&
           std::ranges::any_of(later, [&](std::size_t line) { return line > ended.front(); });
  }

  // The numbers in its frames that are in the file of the script.
  std::vector<std::size_t> lines_in_script(const Finding& traceback) const {
    std::vector<std::size_t> numbers;
    for (std::size_t i = traceback.first; i < std::min(traceback.end, lines_.size()); ++i) {
      const std::string place = place_in_frame(without_prefix(lines_[i], traceback.prefix));
      const std::string file_and_line = place.substr(0, place.find(','));
      const auto colon = file_and_line.rfind(':');
      if (colon != std::string::npos && is_script(end_.script, file_and_line.substr(0, colon)))
        numbers.push_back(std::strtoull(file_and_line.c_str() + colon + 1, nullptr, 10));
    }
    return numbers;
  }

  bool follows_at_once(const Finding& finding) const {
    return finding.first >= end_of_script_ && finding.first < work_;
  }

  // The script had written its exception before the rank died, and another program wrote the rest later. What the script itself writes later
  // may come through a slow pipe.
  bool is_late(const Finding& finding) const {
    return last_before_death_ != 0 && !worked_ && finding.end > end_.lines_at_death && !names_script(finding);
  }

  // The first line from there on that tells of no error, and does not go without saying: somebody has worked.
  std::size_t first_work_after(std::size_t line, bool (*goes_without_saying)(std::string_view),
                               std::size_t most) const {
    while (line < lines_.size() && (is_told_[line] || (goes_without_saying(lines_[line]) && most-- > 0)))
      ++line;
    return line;
  }

  const std::vector<std::string>& lines_;
  const EndOfRank& end_;
  const Finding* script_ = nullptr;           // its last exception; null: there is none
  std::vector<bool> is_told_;                 // lines of errors, in whole or in pieces
  std::size_t end_of_script_ = 0, work_ = 0;  // lines
  std::size_t last_before_death_ = 0;         // the end of the last exception of the script by then
  bool worked_ = false;                       // between that and the death
};

}  // namespace

std::string script_of(const std::vector<std::string>& command) {
  bool in_python = false;
  for (auto word = command.begin(); word != command.end(); ++word) {
    const bool names_module = in_python && word->starts_with("-m");
    if (names_module && (word->size() > 2 || word + 1 != command.end())) {
      std::string file = word->size() > 2 ? word->substr(2) : *(word + 1);
      std::ranges::replace(file, '.', '/');
      return file + ".py";
    }
    if (*word == "-m" || *word == "-c" || word->find(' ') != std::string::npos) break;
    if (word->ends_with(".py")) return *word;
    in_python = in_python || file_name(*word).starts_with("python");
  }
  return "";
}

void weaken_echoes(std::vector<Finding>& findings, const std::vector<std::string>& lines,
                   const EndOfRank& end) {
  const Echoes echoes(findings, lines, end);
  std::vector<Finding*> weak;
  for (Finding& finding : findings) {
    const bool of_child = is_child_without_parent(finding);
    if (of_child) finding.code = kUncaughtInPython;
    if (of_child || echoes.contain(finding)) weak.push_back(&finding);
  }
  for (Finding* const finding : weak) finding->weight = Weight::echo;
}

}  // namespace fleetrun::launch
