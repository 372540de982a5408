#include "runtime/data/formats/ignored_files.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/plural.h"
#include "base/text/printable.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kNamed = 3;  // the rest are counted

}  // namespace

void IgnoredFiles::add(std::string name) {
  ++count;
  if (first.size() < kNamed) first.push_back(std::move(name));
}

std::string describe(const IgnoredFiles& ignored) {
  const auto& [count, first] = ignored;
  if (count == 0) return "";
  const bool has_folder =
      std::any_of(first.begin(), first.end(), [](auto& name) { return name.ends_with('/'); });
  const std::string noun = count == 1   ? plural(count, has_folder ? "folder" : "file")
                           : has_folder ? fmt::format("{} files and folders", count)
                                        : plural(count, "file");
  std::string told = fmt::format("{} ignored: {}", noun, fmt::join(first, ", "));
  if (const std::size_t more = static_cast<std::size_t>(count) - first.size(); more > 0)
    told += fmt::format(" and {} more", more);
  return printable(told);
}

}  // namespace fleetrun::runtime
