#include "launch/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetrun::launch {
namespace {

constexpr auto kDrawPause = std::chrono::milliseconds(500);
constexpr const char* kEraseLine = "\r\x1b[K";

std::string part_of(std::uint64_t done, std::uint64_t all) {
  return all == 0 ? fmt::format("{}", done) : fmt::format("{}/{}", done, all);
}

std::string behind(const std::vector<Progress>& ranks, Phase phase) {
  std::vector<std::size_t> late;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i].phase < phase) late.push_back(i);
  if (late.empty() || phase >= Phase::training) return "";
  return fmt::format("  waiting for {} {}", late.size() == 1 ? "rank" : "ranks", fmt::join(late, ", "));
}

std::size_t terminal_width() {
  constexpr std::size_t kUsualWidth = 80;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return size.ws_col;
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

std::string progress_text(const std::vector<Progress>& ranks) {
  if (ranks.empty()) return "";
  const Progress& first = ranks.front();
  const auto furthest = std::max_element(ranks.begin(), ranks.end(),
                                         [](const auto& a, const auto& b) { return a.phase < b.phase; });
  std::string text = fmt::format("{}{}", describe(first.phase), behind(ranks, furthest->phase));
  if (first.phase < Phase::training) return text;
  double speed = 0;
  for (const Progress& rank : ranks) speed += rank.images_per_second;
  return text + fmt::format("  epoch {}  step {}  loss {:.5f}  {:.1f} images/s",
                            part_of(first.epoch, first.epochs), part_of(first.step, first.steps), first.loss,
                            speed);
}

ProgressLine::ProgressLine(EventLoop& loop, const std::vector<ProgressPagePtr>& pages)
    : loop_(loop), pages_(pages), terminal_(loop, STDERR_FILENO) {
  if (terminal_.is_terminal() && !pages_.empty()) draw_again_later();
}

void ProgressLine::draw_again_later() {
  loop_.call_at(Clock::now() + kDrawPause, [this] {
    draw();
    draw_again_later();
  });
}

void ProgressLine::draw() {
  if (!terminal_.idle()) return;  // a stopped terminal gets no more lines
  std::vector<Progress> ranks;
  for (const ProgressPagePtr& page : pages_) ranks.push_back(read_progress(*page));
  terminal_.write(kEraseLine + progress_text(ranks).substr(0, terminal_width() - 1));
  drawn_ = true;
}

void ProgressLine::clear() {
  if (drawn_) terminal_.write(kEraseLine);
  drawn_ = false;
}

}  // namespace fleetrun::launch
