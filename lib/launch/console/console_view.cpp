#include "launch/console/console_view.h"

#include <algorithm>

namespace fleetrun::launch {

ConsoleView::ConsoleView(EventLoop& loop, const std::vector<ConsoleSource>& sources) {
  for (const ConsoleSource& source : sources) {
    const auto beside = std::count_if(sources.begin(), sources.end(), [&](const ConsoleSource& other) {
      return other.stream == source.stream;
    });
    std::function<std::string()> front;
    if (!source.prefix.text.empty() || beside > 1)
      front = [prefix = source.prefix, place = source.place] { return expand(prefix, place); };
    followers_.push_back(
        std::make_unique<LogFollower>(loop, *source.stream, source.log, LogText(std::move(front))));
  }
}

void ConsoleView::look() {
  for (const auto& follower : followers_) follower->look();
}

bool ConsoleView::finish(const Patience& patience) {
  for (const auto& follower : followers_)
    if (!follower->finish(patience)) return false;
  return true;
}

}  // namespace fleetrun::launch
