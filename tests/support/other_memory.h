// Reads and writes the memory of a child process, as a cosmic ray or a bad memory bank would.
#pragma once
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace fleetrun::testing {

// Puts `other` over the first of every `repeats` equal floats `value` that lie side by side in the process's own
// writable memory. Gives the number of places.
inline int overwrite_floats(pid_t process, float value, std::size_t repeats, float other) {
  const std::string folder = "/proc/" + std::to_string(process);
  const int memory = ::open((folder + "/mem").c_str(), O_RDWR | O_CLOEXEC);
  std::ifstream maps(folder + "/maps");
  constexpr std::uint64_t kMostBytes = std::uint64_t{1}
                                       << 30;  // of a region; larger ones are a sanitizer's shadow
  int places = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0;
    char rights[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) != 3 ||
        std::strcmp(rights, "rw-p") != 0 || end - begin > kMostBytes)
      continue;
    std::vector<float> floats((end - begin) / sizeof(float));
    const ssize_t count = ::pread(memory, floats.data(), end - begin, static_cast<off_t>(begin));
    floats.resize(count > 0 ? static_cast<std::size_t>(count) / sizeof(float) : 0);
    std::size_t run = 0;
    for (std::size_t i = 0; i < floats.size(); ++i) {
      run = floats[i] == value ? run + 1 : 0;
      if (run != repeats) continue;
      run = 0;
      const auto at = static_cast<off_t>(begin + (i + 1 - repeats) * sizeof(float));
      if (::pwrite(memory, &other, sizeof(other), at) == sizeof(other)) ++places;
    }
  }
  ::close(memory);
  return places;
}

}  // namespace fleetrun::testing
