// Files that begin with words of ours, by which we know that we wrote them: no other file is replaced.
#pragma once
#include <string>
#include <string_view>

namespace fleetrun {

struct Mark {
  std::string_view text;
  long place = 0;  // of its first byte in the file
};

// What is at `path` may be replaced: nothing, an empty file, or one with the mark. Throws Error(create) otherwise, also for a
// link, with the hint.
void require_ours(const std::string& path, const Mark& mark, const std::string& hint);

}  // namespace fleetrun
