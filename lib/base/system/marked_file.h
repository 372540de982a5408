// Files with a mark, by which fleetrun knows that it wrote them. It replaces no other files.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace fleetrun {

struct Mark {
  std::string_view text;
  long place = 0;  // of its first byte in the file
};

// Checks that fleetrun may write to `path`: nothing is there, an empty file, or a file with the mark. Otherwise, also
// for a link, throws Error(create) with the hint.
void require_ours(const std::string& path, const Mark& mark, const std::string& hint);

// The same for a file without a mark. `is_ours` tells by the content; `fd` is open for reading.
void require_ours(const std::string& path, const std::function<bool(int fd)>& is_ours,
                  const std::string& hint);

}  // namespace fleetrun
