// What a folder holds besides the samples.
#pragma once
#include <string>
#include <vector>

namespace fleetrun::runtime {

struct IgnoredFiles {
  int count = 0;
  std::vector<std::string> first;  // a few of them by name; folders end in "/"

  void add(std::string name);
};

// "5 files ignored: cat/x.tiff, cat/y.txt, notes.txt and 2 more"; "" if there are none.
std::string describe(const IgnoredFiles& ignored);

}  // namespace fleetrun::runtime
