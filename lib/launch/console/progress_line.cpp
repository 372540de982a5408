#include "launch/console/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text/name_ranks.h"
#include "launch/console/terminal.h"

namespace fleetrun::launch {
namespace {

constexpr auto kDrawPause = std::chrono::milliseconds(500);
constexpr auto kLinePause = std::chrono::seconds(30);  // between lines that stay
constexpr std::size_t kEchoWidth = 3;                  // "^C" or "^Z" after the line, and the cursor
constexpr const char* kEraseLine = "\r\x1b[K";

std::string part_of(std::uint64_t done, std::uint64_t all) {
  return all == 0 ? fmt::format("{}", done) : fmt::format("{}/{}", done, all);
}

std::string behind(const std::vector<Progress>& ranks, Phase phase) {
  std::vector<int> late;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i].phase < phase) late.push_back(static_cast<int>(i));
  if (late.empty() || phase >= Phase::training) return "";
  return "  waiting for " + name_ranks(late);
}

// From the whole line to what matters most.
std::vector<std::string> training_texts(const Progress& first, double speed) {
  const std::string place =
      fmt::format("epoch {}  step {}", part_of(first.epoch, first.epochs), part_of(first.step, first.steps));
  const std::string loss = fmt::format("{}  loss {:.5f}", place, first.loss);
  return {fmt::format("{}  {}  {:.1f} images/s", describe(first.phase), loss, speed),
          fmt::format("{}  {}", describe(first.phase), loss), loss, place,
          fmt::format("step {}", part_of(first.step, first.steps))};
}

}  // namespace

Progress read_progress(const ProgressPage& page) {
  return {.phase = page.phase.load(std::memory_order_relaxed),
          .epoch = page.epoch.load(std::memory_order_relaxed),
          .epochs = page.epochs.load(std::memory_order_relaxed),
          .step = page.step.load(std::memory_order_relaxed),
          .steps = page.steps.load(std::memory_order_relaxed),
          .loss = page.loss.load(std::memory_order_relaxed),
          .images_per_second = page.images_per_second.load(std::memory_order_relaxed)};
}

std::string progress_text(const std::vector<Progress>& ranks, std::size_t width) {
  if (ranks.empty()) return "";
  const Progress& first = ranks.front();
  const auto furthest = std::max_element(ranks.begin(), ranks.end(),
                                         [](const auto& a, const auto& b) { return a.phase < b.phase; });
  if (first.phase < Phase::training)
    return fmt::format("{}{}", describe(first.phase), behind(ranks, furthest->phase)).substr(0, width);
  double speed = 0;
  for (const Progress& rank : ranks) speed += rank.images_per_second;
  const std::vector<std::string> texts = training_texts(first, speed);
  const auto fits =
      std::find_if(texts.begin(), texts.end(), [&](const auto& text) { return text.size() <= width; });
  return fits == texts.end() ? texts.back().substr(0, width) : *fits;
}

ProgressLine::ProgressLine(EventLoop& loop, std::function<std::vector<Progress>()> ranks,
                           const Environment& environment)
    : ranks_(std::move(ranks)),
      terminal_(loop, STDERR_FILENO),
      may_redraw_(can_erase_lines(environment)),
      next_line_(Clock::now() + kLinePause) {}

ProgressLine::~ProgressLine() { clear(); }

std::optional<Clock::duration> ProgressLine::interval() const {
  if (!terminal_.is_terminal() || ranks_().empty()) return std::nullopt;
  return kDrawPause;
}

void ProgressLine::draw() {
  if (!terminal_.idle()) return;  // a stopped terminal gets no more lines
  const std::vector<Progress> ranks = ranks_();
  if (may_redraw_ && is_in_foreground(STDERR_FILENO))
    redraw(progress_text(ranks, std::max(terminal_width(STDERR_FILENO), kEchoWidth) - kEchoWidth));
  else
    add_line(progress_text(ranks));
}

void ProgressLine::redraw(const std::string& text) {
  terminal_.write(kEraseLine + text);
  drawn_ = true;
  next_line_ = Clock::now() + kLinePause;
}

// What we drew in the foreground stays: whoever writes there now has gone to another line.
void ProgressLine::add_line(const std::string& text) {
  drawn_ = false;
  if (Clock::now() < next_line_ || text == last_line_) return;
  terminal_.write(text + "\n");
  last_line_ = text;
  next_line_ = Clock::now() + kLinePause;
}

void ProgressLine::clear() {
  if (drawn_ && is_in_foreground(STDERR_FILENO)) terminal_.write(kEraseLine);
  drawn_ = false;
}

}  // namespace fleetrun::launch
