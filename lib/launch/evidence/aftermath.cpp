#include "launch/evidence/aftermath.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <re2/re2.h>

namespace fleetrun::launch {
namespace {

// What Python, PyTorch, shells and launchers still write when a process ends with an error, and what continues a message.
constexpr std::array<std::string_view, 25> kChatter = {
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
    "NCCL INFO",
    "frame #",
    "Error termination. Backtrace",
    "s/it]",  // a progress bar that is closed
    "it/s",
};

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

bool shows_life(const std::string& line) {
  static const re2::RE2 signs(
      R"((?i)\b(step|steps|epoch|iter|iteration|batch|loss|acc|accuracy|lr|throughput)\b\W{0,3}\d)"
      R"(|\b(retry|retrying|reconnect\w*|trying again|falling back|fall back|continuing|skipping|recovered|resum\w+)\b)"
      R"(|\battempt \d+)");
  return re2::RE2::PartialMatch(line, signs);
}

}  // namespace

std::size_t last_words_begin(const std::vector<std::string>& lines, const std::vector<Finding>& findings,
                             std::size_t most) {
  std::vector<bool> told(lines.size());
  for (const Finding& finding : findings)
    std::fill(told.begin() + static_cast<std::ptrdiff_t>(finding.first),
              told.begin() + static_cast<std::ptrdiff_t>(finding.end), true);
  std::size_t unknown = 0;
  for (std::size_t i = lines.size(); i > 0; --i) {
    if (told[i - 1] || is_chatter(lines[i - 1])) continue;
    if (shows_life(lines[i - 1]) || ++unknown > most) return i;
  }
  return 0;
}

}  // namespace fleetrun::launch
