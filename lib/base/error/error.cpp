#include "base/error/error.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "base/text/printable.h"

namespace fleetrun {

Error::Error(ErrorKind kind, std::string message, std::string hint)
    : std::runtime_error(message), kind_(kind), message_(std::move(message)), hint_(std::move(hint)) {}

Error Error::with(const std::string& activity) const {
  Error copy = *this;
  copy.activities_.push_back(activity);
  return copy;
}

std::string Error::describe(const std::string& program) const {
  std::string text = fmt::format("{}: error: {}\n", program, message_);
  for (const std::string& activity : activities_) text += fmt::format("  while {}\n", activity);
  if (!hint_.empty()) text += fmt::format("  hint: {}\n", hint_);
  return printable_lines(text);
}

std::string describe_errno(int code) {
  return fmt::format("{} (errno {})", std::generic_category().message(code), code);
}

Error file_error(int code, const std::string& doing, const std::string& path) {
  const auto kind = [code] {
    switch (code) {
      case ENOENT:
      case ENOTDIR:
        return ErrorKind::missing;
      case EACCES:
      case EPERM:
        return ErrorKind::permission;
      case EMFILE:
      case ENFILE:
      case ENOMEM:
        return ErrorKind::os;
      default:
        return ErrorKind::io;
    }
  }();
  return Error(kind, fmt::format("{} {}: {}", doing, path, describe_errno(code)));
}

}  // namespace fleetrun
