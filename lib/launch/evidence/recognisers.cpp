#include "launch/evidence/recognisers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <re2/re2.h>

#include "launch/evidence/children.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMessageText =
    64 * 1024;              // bytes at the end of a log: a sanitizer's report, a hundred stacks
constexpr int kTries = 8;   // the last lines with a sign that are looked at
constexpr int kGroups = 6;  // the whole match, and what patterns put in parentheses
constexpr unsigned kAnyEnd = kExit | kAbort | kCrash;

// clang-format off
constexpr std::array kTable = {
    // C++ and the C library
    Recogniser{"terminate called after throwing", R"(instance of '([^']+)'(?:(?:\n.*){0,2}?\n.*?what\(\): *(.+))?)", R"(\1: \2)", "", kExit | kAbort},
    Recogniser{"uncaught exception of type", R"((?m)uncaught exception of type (\S+?)(?:: (.+))?$)", R"(\1: \2)", "", kExit | kAbort},
    Recogniser{"terminate called without an active exception", "terminate called without an active exception", R"(\0)", "", kExit | kAbort, Weight::clue},
    Recogniser{"Assertion `", R"((\S+?):(\d+): (?:(.+): )?Assertion `(.*)' failed)", R"(assertion failed: \4)", R"(\1:\2, in \3)", kExit | kAbort},
    Recogniser{"Assertion failed: ", R"(Assertion failed: \((.+)\), function (\S+), file (\S+), line (\d+))", R"(assertion failed: \1)", R"(\3:\4, in \2)", kExit | kAbort},
    Recogniser{" detected ***", R"(\*\*\* (.+ detected) \*\*\*)", R"(\1)", "", kExit | kAbort},
    Recogniser{"(): ", R"(((?:malloc|free|realloc|munmap_chunk|malloc_consolidate)\(\): .+))", R"(heap corruption: \1)", "", kExit | kAbort},
    Recogniser{"double free or corruption", R"((double free or corruption.*))", R"(heap corruption: \1)", "", kExit | kAbort},
    Recogniser{"corrupted ", R"((corrupted (?:size vs\. prev_size|double-linked list|unsorted chunks).*))", R"(heap corruption: \1)", "", kExit | kAbort},
    Recogniser{"Check failed: ", R"((\S+:\d+)\] (Check failed: .+))", R"(\2)", R"(\1)", kExit | kAbort},
    Recogniser{"LLVM ERROR: ", R"((LLVM ERROR: .+))", R"(\1)", "", kAnyEnd},
    Recogniser{"OMP: Error #", R"((OMP: Error #.+))", R"(\1)", "", kExit | kAbort},
    Recogniser{"Intel MKL FATAL ERROR", R"((Intel MKL FATAL ERROR.+))", R"(\1)", "", kExit | kAbort},
    // gomp_fatal() of libgomp/error.c; its gomp_error() only warns, such as of a variable with an invalid value.
    Recogniser{"libgomp: ", R"((libgomp: (?:Thread creation failed|Out of memory|could not|Couldn't|cannot|error in).*))", R"(\1)", "", kExit | kAbort},
    // Sanitizers
    Recogniser{"SUMMARY: ", R"((?m)SUMMARY: (\w+Sanitizer: \S.*?) ([^\s()]+:\d+)(?::\d+)?(?: in (.*))?$)", R"(\1)", R"(\2, in \3)", kAnyEnd, Weight::certain},
    Recogniser{"SUMMARY: ", R"(SUMMARY: (\w+Sanitizer: .+))", R"(\1)", "", kAnyEnd, Weight::certain},
    Recogniser{": runtime error: ", R"((\S+):(\d+):\d+: runtime error: (.+))", R"(undefined behaviour: \3)", R"(\1:\2)", kAnyEnd},
    // Python's own messages
    Recogniser{"Fatal Python error: ", R"re((Fatal Python error: .+)(?:(?s:.*?)\n[^\n]*urrent thread [^\n]*:\n[^\n]*?File "([^"\n]+)", line (\d+) in (\S+))?)re", R"(\1)", R"(\2:\3, in \4)", kAnyEnd, Weight::clue, 0, kMessageText},  // the stacks of all threads
    Recogniser{"can't open file", R"((can't open file .+))", R"(\1)", "", kExit, Weight::last_words, 2},
    Recogniser{": No module named ", R"(python[\d.]*: (No module named .+))", R"(\1)", "", kExit, Weight::last_words, 1},
    Recogniser{": Error while finding module specification for ", R"(python[\d.]*: (Error while finding module specification for .+))", R"(\1)", "", kExit, Weight::last_words, 1},
    Recogniser{": error: ", R"((?m)^rank \d+: error: (.+)$)", R"(\1)", "", kExit, Weight::last_words, 2},  // of fleetrun-worker
    Recogniser{": error: ", R"((\S+: error: .+))", R"(\1)", "", kExit, Weight::last_words, 2},  // of argparse
    // CUDA, NCCL, PaddlePaddle, MPI, PyTorch's launcher
    Recogniser{"Assertion `", R"((\S+\.cuh?):(\d+): .*Assertion `(.*)` failed)", R"(assertion on the GPU failed: \3)", R"(\1:\2)", kExit | kAbort, Weight::clue},
    Recogniser{"CUDA out of memory", R"((CUDA out of memory\. Tried to allocate .+))", R"(\1)", "", kExit | kAbort, Weight::clue},  // of PyTorch, also where the program caught it
    Recogniser{"CUDA error", R"((CUDA error(?: at|:| \d).+))", R"(\1)", "", kExit | kAbort, Weight::clue},
    Recogniser{"Cuda failure", R"((Cuda failure.+))", R"(\1)", "", kExit | kAbort, Weight::clue},
    Recogniser{"NCCL WARN ", R"(NCCL WARN (.+))", R"(NCCL: \1)", "", kExit | kAbort, Weight::clue},
    Recogniser{"NCCL failure ", R"((NCCL failure .+))", R"(\1)", "", kExit | kAbort, Weight::clue},
    Recogniser{"nccl", R"((nccl(?:UnhandledCuda|System|Internal|InvalidUsage|InvalidArgument|Remote)\w*: .+))", R"(\1)", "", kExit | kAbort, Weight::clue},
    Recogniser{" encountered in worker.", R"(ERROR: (Unexpected (?:segmentation fault|bus error|floating-point exception) encountered in worker\..*))", R"(\1)", "", kAnyEnd, Weight::clue},  // of a worker of PyTorch's DataLoader
    Recogniser{"Watchdog caught collective", R"((Watchdog caught collective operation timeout: .+))", R"(\1)", "", kExit | kAbort, Weight::clue},
    Recogniser{"Error Message Summary:", R"(Error Message Summary:\n-+\n(\w+): *\n*(\S.*))", R"(\1: \2)", "", kExit | kAbort},  // of PaddlePaddle
    Recogniser{"An error occurred in MPI_", R"(An error occurred in (MPI_\w+)(?s:.*?)\*\*\* (MPI_ERR_\w+: .+))", R"(\1: \2)", "", kExit | kAbort},
    Recogniser{"Fatal error in ", R"((Fatal error in (?:internal_)?P?MPI_\w+: .+))", R"(\1)", "", kExit | kAbort},
    Recogniser{"MPI_ABORT was invoked", R"((MPI_ABORT was invoked on rank \d+).*\n.*errorcode (-?\d+))", R"(\1 with code \2)", "", kExit | kAbort, Weight::clue},
    Recogniser{"application called MPI_Abort", R"((application called MPI_Abort\(.*\)))", R"(\1)", "", kExit | kAbort, Weight::clue},
    Recogniser{"Process received signal ***", R"(Process received signal \*\*\*\n.*Signal: (.+))", R"(\1)", "", kAnyEnd, Weight::clue},
    Recogniser{"noticed that process rank", R"(noticed that (process rank \d+ .*exited on signal \d+[^.\n]*))", R"(\1)", "", kExit, Weight::clue},
    Recogniser{"failed (exitcode: ", R"(failed \(exitcode: (-?\d+)\) (local_rank: \d+))", R"(\2 ended with code \1)", "", kExit, Weight::clue},
    // Other languages
    Recogniser{"panic: ", R"((?:^|[\]:>] )(panic: .+)(?s:.*?)goroutine \d+ \[(?:(?s:.*?)\nmain\.[^\n]+\n\s+(\S+\.go:\d+))?)", R"(\1)", R"(\2)", kExit | kAbort, Weight::certain},
    Recogniser{"fatal error: ", R"((?:^|[\]:>] )(fatal error: .+)(?s:.*?)goroutine \d+ \[)", R"(\1)", "", kExit | kAbort, Weight::certain},
    Recogniser{"panicked at ", R"(thread '[^']*'(?: \(\d+\))? panicked at '(.*)', (\S+:\d+):\d+)", R"(panicked: \1)", R"(\2)", kExit | kAbort},
    Recogniser{"panicked at ", R"(thread '[^']*'(?: \(\d+\))? panicked at (\S+:\d+):\d+:\n(.+))", R"(panicked: \2)", R"(\1)", kExit | kAbort},
    Recogniser{"Exception in thread \"", R"re(Exception in thread "[^"]*" (\S.*)(?:\n\s+at (\S+?)\(([^)\n]+)\))?)re", R"(\1)", R"(\3, in \2)", kExit},
    Recogniser{"A fatal error has been detected by the Java Runtime", R"(detected by the Java Runtime Environment:\n#\s*\n#\s+(.+))", R"(Java Runtime Environment: \1)", "", kAnyEnd},
    Recogniser{"At line ", R"(At line (\d+) of file (\S+).*\n.*(Fortran runtime error: .+))", R"(\3)", R"(\2:\1)", kExit},
    Recogniser{"Fortran runtime error: ", R"((Fortran runtime error: .+))", R"(\1)", "", kExit},
    Recogniser{"ERROR STOP", R"((ERROR STOP.*))", R"(\1)", "", kExit},
    Recogniser{"Program received signal ", R"(Program received signal (SIG\w+: .+)(?:(?s:.*?)\bat (\S+\.[fF]\d*:\d+))?)", R"(\1)", R"(\2)", kAnyEnd, Weight::clue},
    Recogniser{"ERROR: LoadError: ", R"(ERROR: LoadError: (.+))", R"(\1)", "", kExit},  // of Julia
    // Shells and the dynamic loader
    Recogniser{": line ", R"((\S+): line (\d+): (.+: command not found))", R"(\3)", R"(\1:\2)", kExit, Weight::last_words, 127},
    Recogniser{": not found", R"((\S+): (\d+): (.+: not found))", R"(\3)", R"(\1:\2)", kExit, Weight::last_words, 127},
    Recogniser{": Permission denied", R"((\S*sh): (\d+): (\S+: Permission denied))", R"(\3)", R"(\1:\2)", kExit, Weight::last_words, 126},  // of dash
    Recogniser{"sh: ", R"((\S*sh): (\d+): (.*cannot (?:open|create) .+|cd: can't cd to .+|\w+: parameter not set.*|Syntax error: .+|Bad substitution|(?:set|shift|exit|return|trap|export): Illegal .+|shift: can't shift that many|\w+: is read only|arithmetic expression: .+|.*: bad variable name|[A-Z][A-Z0-9_]*: .+))", R"(\3)", R"(\1:\2)", kExit, Weight::last_words, 2},
    Recogniser{": line ", R"((\S+): line (\d+): (.+: (?:Permission denied|cannot execute.*)))", R"(\3)", R"(\1:\2)", kExit, Weight::last_words, 126},
    Recogniser{": line ", R"((\S+): line (\d+): (.+: (?:No such file or directory|unbound variable|parameter null or not set|bad substitution)|syntax error.*))", R"(\3)", R"(\1:\2)", kExit},
    Recogniser{": line ", R"((\S+): line (\d+): +\d+ (Segmentation fault|Aborted|Bus error|Floating point exception|Illegal instruction) +(?:\(core dumped\) +)?(.+))", R"(\3: \4)", R"(\1:\2)", kAnyEnd, Weight::clue},
    Recogniser{"error while loading shared libraries: ", R"((error while loading shared libraries: .+))", R"(\1)", "", kExit, Weight::last_words, 127},
    Recogniser{"symbol lookup error: ", R"((symbol lookup error: .+))", R"(\1)", "", kExit, Weight::last_words, 127},
    Recogniser{"' not found (required by", R"((version `.+' not found \(required by .+\)))", R"(\1)", "", kExit},
};
// clang-format on

std::string fill_in(const re2::RE2& pattern, std::string_view text, const re2::StringPiece* groups) {
  std::string filled;
  if (!pattern.Rewrite(&filled, re2::StringPiece(text.data(), text.size()), groups, kGroups)) return "";
  for (const std::string_view missing : {": ", ", in "})  // a group that did not match is empty
    if (filled.ends_with(missing)) filled.resize(filled.size() - missing.size());
  return filled;
}

// The pattern at the line that begins at `start`.
std::optional<Finding> match(const Recogniser& row, const re2::RE2& pattern, const LogLines& log,
                             std::size_t start) {
  const re2::StringPiece window(log.text.data() + start, std::min(row.window, log.text.size() - start));
  const auto line_end = std::min(log.text.find('\n', start) - start, window.size());
  std::array<re2::StringPiece, kGroups> groups;
  if (!pattern.Match(window, 0, window.size(), re2::RE2::UNANCHORED, groups.data(), kGroups))
    return std::nullopt;
  const auto from = static_cast<std::size_t>(groups[0].data() - window.data());
  if (from > line_end) return std::nullopt;
  const std::size_t first = log.line_at(start);
  const auto lines = std::count(groups[0].begin(), groups[0].end(), '\n');
  Finding found = {.first = first, .end = first + static_cast<std::size_t>(lines) + 1};
  found.cause.what = fill_in(pattern, row.what, groups.data());
  found.cause.place = fill_in(pattern, row.place, groups.data());
  if (found.cause.place.starts_with(':')) found.cause.place.clear();
  found.endings = row.endings;
  found.weight = row.weight;
  found.code = row.code;
  return found;
}

bool has_sign(const Recogniser& row, const LogLines& log, std::size_t begin) {
  return ::memmem(log.text.data() + begin, log.text.size() - begin, row.sign.data(), row.sign.size()) !=
         nullptr;
}

std::optional<Finding> find_last(const Recogniser& row, const LogLines& log) {
  const std::size_t begin = log.text.size() - std::min(log.text.size(), kMessageText);
  if (!has_sign(row, log, begin)) return std::nullopt;
  std::optional<re2::RE2> pattern;  // made when a sign is there, which is rare
  std::size_t end = std::string::npos;
  for (int i = 0; i < kTries; ++i) {
    const auto sign = log.text.rfind(row.sign, end);
    if (sign == std::string::npos || sign < begin) return std::nullopt;
    if (!pattern) pattern.emplace(re2::StringPiece(row.pattern.data(), row.pattern.size()));
    const std::size_t start = log.starts[log.line_at(sign)];
    if (auto found = match(row, *pattern, log, start)) return found;
    if (start == 0) return std::nullopt;
    end = start - 1;
  }
  return std::nullopt;
}

}  // namespace

std::span<const Recogniser> recognisers() { return kTable; }

std::vector<Finding> find_messages(const LogLines& log) {
  std::vector<Finding> all;
  for (const Recogniser& row : kTable) {
    auto found = find_last(row, log);
    if (!found) continue;
    if (is_crash(*found)) note_crashed_process(log, *found);
    all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace fleetrun::launch
