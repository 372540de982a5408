#include "launch/console/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/text/columns.h"
#include "base/text/name_ranks.h"
#include "base/text/utf8.h"
#include "launch/console/terminal.h"
#include "launch/logs/escapes.h"

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

// "3:20", "1:03:20", "2 d 3 h".
std::string describe_left(Clock::duration left) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left).count();
  constexpr int kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (seconds >= kDay) return fmt::format("{} d {} h", seconds / kDay, seconds % kDay / kHour);
  if (seconds >= kHour)
    return fmt::format("{}:{:02}:{:02}", seconds / kHour, seconds % kHour / kMinute, seconds % kMinute);
  return fmt::format("{}:{:02}", seconds / kMinute, seconds % kMinute);
}

std::string epoch_of(const Progress& first) {
  if (first.epochs <= 1) return fmt::format("epoch {}", first.epoch);
  return fmt::format("epoch {} of 0-{}", first.epoch, first.epochs - 1);
}

// From the whole line to what matters most.
std::vector<std::string> training_texts(const Progress& first, double speed,
                                        std::optional<Clock::duration> left) {
  const std::string phase = fmt::format("{}  ", describe(first.phase));
  const std::string step = fmt::format("step {}", part_of(first.step, first.steps));
  const std::string place = fmt::format("{}  {}", epoch_of(first), step);
  const std::string loss = std::isnan(first.loss) ? "" : fmt::format("  loss {:.5f}", first.loss);
  const std::string eta = left ? "  ETA " + describe_left(*left) : "";
  return {fmt::format("{}{}{}  {:.1f} images/s{}", phase, place, loss, speed, eta),
          phase + place + loss + eta,
          place + loss + eta,
          place + eta,
          place,
          step};
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

std::optional<Clock::duration> TimeLeft::look(const Progress& first, TimePoint now) {
  constexpr auto kLeast = std::chrono::seconds(1);  // of steps; less says little
  if (first.phase < Phase::training || first.step == 0 || first.steps < first.step) return std::nullopt;
  if (!start_ || first.step < last_.step) start_ = last_ = {now, first.step};
  if (first.step > last_.step) last_ = {now, first.step};
  const Clock::duration took = last_.time - start_->time;
  if (took < kLeast) return std::nullopt;
  const double per_step =
      std::chrono::duration<double>(took).count() / static_cast<double>(last_.step - start_->step);
  const double rest = per_step * static_cast<double>(first.steps - first.step);
  const auto left = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(rest));
  return std::max(Clock::duration::zero(), left - (now - last_.time));
}

std::string first_columns(const std::string& line, std::size_t columns) {
  std::size_t at = 0;
  while (at < line.size()) {
    if (line[at] == kEscape) {
      at = end_of_escape(line, at);
      continue;
    }
    const std::size_t length = std::max<std::size_t>(1, utf8_character_length(line, at));
    const std::size_t width = columns_of_character(std::string_view(line).substr(at, length));
    if (width > columns) break;
    columns -= width;
    at += length;
  }
  return line.substr(0, at);
}

std::string progress_text(const std::vector<Progress>& ranks, std::size_t width,
                          std::optional<Clock::duration> left) {
  if (ranks.empty()) return "";
  const Progress& first = ranks.front();
  const auto furthest = std::max_element(ranks.begin(), ranks.end(),
                                         [](const auto& a, const auto& b) { return a.phase < b.phase; });
  if (first.phase < Phase::training)
    return fmt::format("{}{}", describe(first.phase), behind(ranks, furthest->phase)).substr(0, width);
  double speed = 0;
  for (const Progress& rank : ranks) speed += rank.images_per_second;
  const std::vector<std::string> texts = training_texts(first, speed, left);
  const auto fits =
      std::find_if(texts.begin(), texts.end(), [&](const auto& text) { return text.size() <= width; });
  return fits == texts.end() ? texts.back().substr(0, width) : *fits;
}

ProgressLine::ProgressLine(EventLoop& loop, std::function<std::vector<Progress>()> ranks,
                           std::function<std::string()> bar, const Environment& environment)
    : ranks_(std::move(ranks)),
      bar_(std::move(bar)),
      terminal_(loop, STDERR_FILENO),
      may_redraw_(can_erase_lines(environment)),
      next_line_(Clock::now() + kLinePause) {}

ProgressLine::~ProgressLine() { clear(); }

std::optional<Clock::duration> ProgressLine::interval() const {
  if (!terminal_.is_terminal()) return std::nullopt;
  return kDrawPause;
}

std::string ProgressLine::text(std::size_t width) {
  const std::vector<Progress> ranks = ranks_();
  if (ranks.empty()) return first_columns(bar_(), width);
  return progress_text(ranks, width, left_.look(ranks.front(), Clock::now()));
}

void ProgressLine::draw() {
  if (!terminal_.idle()) return;  // a stopped terminal gets no more lines
  const bool redraws = may_redraw_ && is_in_foreground(STDERR_FILENO);
  const std::size_t width =
      redraws ? std::max(terminal_width(STDERR_FILENO), kEchoWidth) - kEchoWidth : kLongestLine;
  const std::string line = text(width);
  if (line.empty()) return clear();
  if (redraws)
    redraw(line);
  else
    add_line(line);
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
