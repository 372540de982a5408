#include "launch/evidence/echoes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "launch/evidence/aftermath.h"
#include "launch/evidence/log_lines.h"

namespace fleetrun::launch {
namespace {

constexpr int kUncaughtInPython = 1;  // the exit code

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

// In one of its frames, as when a profiler or `-m` runs the script.
bool names_script(const std::vector<std::string>& lines, const Finding& traceback, std::string_view script) {
  const std::string frame = fmt::format("{}\", line ", file_name(script));
  return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(traceback.first),
                     lines.begin() + static_cast<std::ptrdiff_t>(std::min(traceback.end, lines.size())),
                     [&](const std::string& line) { return line.find(frame) != std::string::npos; });
}

bool is_run_as_module(const Finding& traceback) {
  return traceback.file == "<frozen runpy>" || file_name(traceback.file) == "runpy.py";
}

class Echoes {
 public:
  Echoes(const std::vector<Finding>& findings, const std::vector<std::string>& lines, std::string_view script,
         std::size_t at_death)
      : findings_(findings), lines_(lines), script_(script), at_death_(at_death) {
    for (const Finding& finding : findings) {
      if (finding.endings == 0 || !finding.from_top) continue;
      if (is_of_script(finding)) end_of_script_ = std::max(end_of_script_, finding.end);
      const bool may_be_last = script.empty() || is_of_script(finding);
      if (may_be_last && finding.end <= at_death && (last_ == nullptr || finding.end > last_->end))
        last_ = &finding;
    }
    work_ = end_of_script_ == 0 ? 0 : first_work_after(end_of_script_);
  }

  bool contain(const Finding& finding) const {
    if (!finding.from_top && finding.has_header) return false;
    return follows_at_once(finding) || is_late(finding);
  }

 private:
  bool is_of_script(const Finding& traceback) const {
    return is_script(script_, traceback.file) ||
           (is_run_as_module(traceback) && names_script(lines_, traceback, script_));
  }

  bool follows_at_once(const Finding& finding) const {
    return finding.first >= end_of_script_ && finding.first < work_ &&
           !names_script(lines_, finding, script_);
  }

  // The rank had written an uncaught exception of its own before it died, and the rest came later, from another process. Without a known
  // script, the rank may be a shell, and what the same program writes later may come through a slow pipe.
  bool is_late(const Finding& finding) const {
    return last_ != nullptr && finding.end > at_death_ &&
           !(script_.empty() && names_script(lines_, finding, last_->file));
  }

  // The first line from there on that neither belongs to a traceback nor is what an ending process writes: somebody has worked.
  std::size_t first_work_after(std::size_t start) const {
    std::vector<bool> is_found(lines_.size());
    for (const Finding& finding : findings_)
      for (std::size_t i = finding.first; i < std::min(finding.end, lines_.size()); ++i) is_found[i] = true;
    std::size_t line = start;
    while (line < lines_.size() && (is_found[line] || is_chatter(lines_[line]) || is_complaint(lines_[line])))
      ++line;
    return line;
  }

  const std::vector<Finding>& findings_;
  const std::vector<std::string>& lines_;
  std::string_view script_;
  std::size_t at_death_;
  std::size_t end_of_script_ = 0, work_ = 0;  // lines
  const Finding* last_ = nullptr;             // the last that may have ended the rank
};

}  // namespace

std::string script_of(const std::vector<std::string>& command) {
  for (auto word = command.begin(); word != command.end(); ++word) {
    if (*word == "-m" && word + 1 != command.end()) {
      std::string file = *(word + 1);
      std::ranges::replace(file, '.', '/');
      return file + ".py";
    }
    if (*word == "-c" || word->find(' ') != std::string::npos) break;
    if (word->ends_with(".py")) return *word;
  }
  return "";
}

void weaken_echoes(std::vector<Finding>& findings, const std::vector<std::string>& lines,
                   std::string_view script, std::size_t at_death) {
  const Echoes echoes(findings, lines, script, at_death);
  std::vector<Finding*> weak;
  for (Finding& finding : findings) {
    const bool of_child = finding.first > 0 && is_child_without_parent(lines[finding.first - 1], finding);
    if (of_child) finding.code = kUncaughtInPython;
    if (of_child || echoes.contain(finding)) weak.push_back(&finding);
  }
  for (Finding* const finding : weak) finding->weight = Weight::echo;
}

}  // namespace fleetrun::launch
