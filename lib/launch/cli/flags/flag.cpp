#include "launch/cli/flags/flag.h"

#include <algorithm>

namespace fleetrun::launch {
namespace {

std::string replaced_after_dashes(std::string_view name, char old_letter, char new_letter) {
  std::string text(name);
  if (text.starts_with("--")) std::replace(text.begin() + 2, text.end(), old_letter, new_letter);
  return text;
}

}  // namespace

bool Flag::is_called(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Flag* flag_called(const std::vector<Flag>& flags, std::string_view name) {
  const std::string known = replaced_after_dashes(name, '-', '_');
  const auto found =
      std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.is_called(known); });
  return found == flags.end() ? nullptr : &*found;
}

bool looks_like_a_flag(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

std::string with_dashes(std::string_view name) { return replaced_after_dashes(name, '_', '-'); }

}  // namespace fleetrun::launch
