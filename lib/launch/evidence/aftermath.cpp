#include "launch/evidence/aftermath.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <re2/re2.h>

#include "launch/evidence/log_lines.h"

namespace fleetrun::launch {
namespace {

constexpr std::array<std::string_view, 28> kChatter = {
    " (most recent call first):",  // of Python's faulthandler, for each thread
    "Extension modules: ",         // its last line
    "Exception ignored in",
    "resource_tracker",
    "Warning: ",
    "warnings.warn",
    "destroy_process_group",
    "wandb:",
    "core dumped",
    "Aborted",
    "Segmentation fault",
    "torch.distributed.elastic",
    "torch/distributed/elastic",
    "srun: ",
    "slurmstepd",
    "mpirun",
    "prterun",
    "Primary job",
    "terminate called",
    "CUDA kernel errors might be",
    "For debugging consider passing",
    "Compile with `TORCH",
    "You can suppress this exception and fall back to eager",
    "NCCL INFO",
    "frame #",
    "Error termination. Backtrace",
    "s/it]",  // a progress bar that is closed
    "it/s",
};

constexpr std::size_t kAtOnce = 3;  // lines: who tries again says so first
constexpr int kRises = 3;  // of a count, in lines that may also be of a message or of a bar that is closed

bool shows_progress(std::string_view line) {
  static const re2::RE2 signs(
      R"((?i)\b(steps?|epochs?|iter|iterations?|batch|episodes?|updates?|timesteps?|loss|acc|accuracy|lr|throughput)\b(?:\W{0,3}|[ :=]{1,20})\d)");
  return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), signs);
}

bool tries_again(std::string_view line) {
  static const re2::RE2 signs(
      R"((?i)\b(retrying|reconnect(ing|ed)|trying again|falling back|continuing|skipping|recovered|resum(ing|ed))\b)"
      R"(|\b(attempt|retry) \d+)");
  return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), signs);
}

// Or advises somebody to do so.
bool may_try_again(std::string_view line) {
  static const re2::RE2 signs(R"((?i)\b(retry|reconnect\w*|fall back|resum\w+)\b)");
  return tries_again(line) || re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), signs);
}

// "[10:41:03] ...", "2026-11-26 10:41:03 ...", "INFO:root:..."
bool is_record(std::string_view line) {
  static const re2::RE2 start(
      R"(^\W{0,2}(?:\d{2,4}[-/:]\d{2}[-/:]\d{2}|(?:DEBUG|INFO|WARN|WARNING)\b|[IWEF]\d{4} ))");
  return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), start);
}

// "step 12: loss 0.71" is "step0:loss0.0", with all numbers 0, and without the blanks that align numbers, and blocks of a bar.
std::string shape_of(std::string_view line) {
  std::string shape;
  for (const char letter : line) {
    const bool is_block = letter == ' ' || letter == '#' || static_cast<unsigned char>(letter) >= 0x80;
    if (is_digit(letter) ? shape.empty() || shape.back() != '0' : !is_block)
      shape += is_digit(letter) ? '0' : letter;
  }
  return shape;
}

// What counts in a line: "5: loss 2.1" in "step 5: loss 2.1", and in the row of a table from "12/100" or from "| 12 |" on. "" if nothing does.
struct Counted {
  std::string named, row;
};
Counted counted_in(std::string_view line) {
  static const re2::RE2 counter(
      R"((?i)\b(?:steps?|epochs?|iter|iterations?|batch|episodes?|updates?|timesteps?)\b(?:\W{0,3}|[ :=]{1,20})(\d.*))"
      R"(|^[ \[|]*(\d+/\d+\b.*|\d+ *\|.*))");
  Counted counted;
  re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), counter, &counted.named, &counted.row);
  return counted;
}

std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    if (is_digit(*at)) numbers.push_back(std::strtod(at, &end));
    at = end == nullptr ? at + 1 : end;
  }
  return numbers;
}

std::vector<double> counts_of(std::string_view line) {
  const Counted counted = counted_in(line);
  return numbers_in(counted.named.empty() ? counted.row : counted.named);
}

// Lines that a process writes again and again.
class Habits {
 public:
  void see(std::string_view line) { seen_.insert(shape_of(line)); }
  bool knows(std::string_view line) const { return seen_.count(shape_of(line)) != 0; }

 private:
  std::unordered_set<std::string> seen_;
};

// "step 5: loss 2.1", later "step 6: loss 2.0": nothing but the numbers differs, and the count is higher.
class Counters {
 public:
  // How often it has risen so far, with this line; 0: not in this line.
  int rises_in(std::string_view line) {
    return count(line, [](const auto& now, const auto& then) { return now > then; });
  }
  // The same for lines that are read from the last to the first.
  int falls_in(std::string_view line) {
    return count(line, [](const auto& now, const auto& then) { return now < then; });
  }

 private:
  struct Known {
    std::vector<double> counts;
    int changes = 0;
  };

  template <typename Compare>
  int count(std::string_view line, Compare compare) {
    std::vector<double> counts = counts_of(line);
    if (counts.empty()) return 0;
    Known& last = last_[shape_of(line)];
    const bool changes = !last.counts.empty() && compare(counts, last.counts);
    last.counts = std::move(counts);
    return changes ? ++last.changes : 0;
  }

  std::unordered_map<std::string, Known> last_;  // by shape of the line
};

}  // namespace

bool is_chatter(std::string_view line) {
  constexpr std::string_view kContinued = " \t#";  // of a message or a stack: "#3  0x55d in main"
  if (line.empty() || kContinued.find(line.front()) != std::string_view::npos) return true;
  const bool has_words = std::any_of(line.begin(), line.end(), [](unsigned char letter) {
    return letter >= 0x80 || (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= 'a' && letter <= 'z');
  });
  return !has_words || std::any_of(kChatter.begin(), kChatter.end(), [&](std::string_view chatter) {
    return line.find(chatter) != std::string_view::npos;
  });
}

bool is_complaint(std::string_view line) {
  static const re2::RE2 signs(R"(\b(?:ERROR|WARN|WARNING|CRITICAL|FATAL)\b|\[[WEF]\d{4} )");
  return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), signs) && !tries_again(line);
}

std::size_t last_words_begin(const LogLines& log, const std::vector<Finding>& findings, std::size_t most) {
  const std::vector<std::string>& lines = log.lines;
  std::vector<bool> told(lines.size());
  for (const Finding& finding : findings)
    std::fill(told.begin() + static_cast<std::ptrdiff_t>(finding.first),
              told.begin() + static_cast<std::ptrdiff_t>(finding.end), true);
  Counters counters;
  std::size_t unknown = 0, counted = 0;  // counted: the last line with a count that goes without saying
  for (std::size_t i = lines.size(); i > 0; --i) {
    if (told[i - 1]) continue;
    if (log.advances[i - 1]) return i;
    if (is_chatter(lines[i - 1])) {
      if (counted == 0 && !counts_of(lines[i - 1]).empty()) counted = i;
      if (counters.falls_in(lines[i - 1]) >= kRises) return counted;
      continue;
    }
    if (shows_progress(lines[i - 1]) || may_try_again(lines[i - 1]) || ++unknown > most) return i;
  }
  return 0;
}

bool worked_on(const LogLines& log, const Finding& traceback, std::size_t most) {
  const std::vector<std::string>& lines = log.lines;
  Habits habits;
  for (std::size_t i = 0; i < traceback.first; ++i) habits.see(without_prefix(lines[i], traceback.prefix));
  Counters counters;
  std::size_t plain = 0, work = 0;
  bool tried_again = false;
  for (std::size_t i = traceback.end; i < lines.size(); ++i) {
    const std::string_view line = without_prefix(lines[i], traceback.prefix);
    const int rises = counters.rises_in(line);
    if (log.advances[i]) return true;
    if (rises > static_cast<int>(most)) return true;  // a message may quote some rows
    if (is_chatter(line)) continue;
    if (tried_again || (rises > 0 && !counted_in(line).named.empty())) return true;
    if (++plain <= kAtOnce) tried_again = tries_again(line);
    if ((shows_progress(line) || is_record(line) || habits.knows(line)) && ++work > most) return true;
  }
  return false;
}

}  // namespace fleetrun::launch
