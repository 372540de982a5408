#include "launch/console/console_view.h"

#include <algorithm>
#include <array>

#include "base/system/colours.h"

namespace fleetrun::launch {

namespace {

// Red is the colour of problems.
Colour colour_of_rank(int rank) {
  constexpr std::array kColours = {Colour::green, Colour::yellow, Colour::blue, Colour::magenta,
                                   Colour::cyan};
  return kColours[static_cast<std::size_t>(rank) % kColours.size()];
}

}  // namespace

std::function<std::string()> line_start(const LogPrefix& prefix, const LinePlace& place, bool has_colours) {
  if (!has_colours || prefix.text.empty()) return [prefix, place] { return expand(prefix, place); };
  return [prefix, place] { return in_colour(expand(prefix, place), colour_of_rank(place.rank)); };
}

ConsoleView::ConsoleView(EventLoop& loop, const std::vector<ConsoleSource>& sources, bool keeps_bars) {
  for (const ConsoleSource& source : sources) {
    const auto beside = std::count_if(sources.begin(), sources.end(), [&](const ConsoleSource& other) {
      return other.stream == source.stream;
    });
    std::function<std::string()> front;
    if (!source.prefix.text.empty() || beside > 1)
      front = line_start(source.prefix, source.place, source.has_colours);
    LogText text(std::move(front));
    if (keeps_bars) text.keep_bar();
    followers_.push_back(std::make_unique<LogFollower>(loop, *source.stream, source.log, std::move(text)));
  }
}

void ConsoleView::look() {
  for (const auto& follower : followers_) follower->look();
}

std::string ConsoleView::bar() const {
  for (const auto& follower : followers_)
    if (std::string bar = follower->bar(); !bar.empty()) return bar;
  return "";
}

bool ConsoleView::finish(const Patience& patience) {
  for (const auto& follower : followers_)
    if (!follower->finish(patience)) return false;
  return true;
}

}  // namespace fleetrun::launch
