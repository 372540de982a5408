// Messages of compilers' runtimes, libraries, shells and launchers that say why a process ended: a table, one row each.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "launch/evidence/finding.h"
#include "launch/evidence/log_lines.h"

namespace fleetrun::launch {

struct Recogniser {
  std::string_view sign;     // a line with this text is looked at
  std::string_view pattern;  // of RE2; sees that line from its start and what follows it
  std::string_view what;     // the sentence, with \1 to \9 from the pattern
  std::string_view place;    // the same for the place
  unsigned endings = 0;      // that the message explains
  Weight weight = Weight::last_words;
  int code = 0;               // the only exit code that it explains; 0: any
  std::size_t window = 4096;  // bytes from the start of the line that the pattern sees
};

std::span<const Recogniser> recognisers();

// What the rows of the table find: of each row its last message.
std::vector<Finding> find_messages(const LogLines& log);

}  // namespace fleetrun::launch
