#include "launch/console.h"

#include <unistd.h>

#include <chrono>

#include <fmt/format.h>

#include "launch/banner.h"

namespace fleetrun::launch {

Console::Console(EventLoop& loop) : out(loop, STDOUT_FILENO), err(loop, STDERR_FILENO) {}

void Console::log(std::string_view level, std::string_view message) {
  err.write(log_text(level, std::chrono::system_clock::now(), message));
}

void Console::say(std::string_view message) { err.write(fmt::format("fleetrun: {}\n", message)); }

}  // namespace fleetrun::launch
