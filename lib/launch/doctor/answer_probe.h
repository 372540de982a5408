// The questions of the first node, and how each node answers them. Question and answer are JSON objects.
//
//   {"probe": "facts"}                        what read_own_facts() found
//   {"probe": "reach", "to": [ENDPOINT...]}   {"problems": [...]}, as try_to_connect() has them
//   {"probe": "link", "to": ENDPOINT}         what measure_link() found
//   {"probe": "cpu"}                          {"gflops", "share", "others"}
//   {"probe": "clock"}                        {"now"}: ns since 1970
//   {"probe": "end", "code", "lines"}         {}: the examination is over
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launch/doctor/examination.h"

namespace fleetrun::launch {

struct DoctorsWord {  // how the examination ended
  int code = 0;
  std::vector<std::string> lines;
};

JsonValue to_value(const Endpoint& endpoint);

// Blocks for as long as the probe takes, which is less than 3 s. Fills in `word` when the examination is over.
std::string answer_probe(const std::string& request, const NodeFacts& own, std::optional<DoctorsWord>& word);

}  // namespace fleetrun::launch
