// Changes bytes at random, the same way for the same seed: what a fuzzer without the compiler's help does.
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fleetrun::fuzz {

class Mutator {
 public:
  Mutator(std::uint64_t seed, std::vector<std::string> seeds) : random_(seed), pool_(std::move(seeds)) {}

  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  // One of the pool with a few changes. Now and then it joins the pool, so that changes add up.
  std::string next() {
    std::string bytes = pool_[below(pool_.size())];
    for (std::size_t change = 1 + below(6); change > 0; --change) mutate(bytes);
    if (below(100) == 0) keep(bytes);
    return bytes;
  }

 private:
  static constexpr std::size_t kMostBytes = 16 << 10;
  static constexpr std::size_t kMostKept = 400;  // then new ones take the places of old ones

  void mutate(std::string& bytes) {
    static const std::vector<std::string> kWords = {std::string(4, '\xff'),
                                                    std::string(4, '\0'),
                                                    std::string("\x00\x10\x00\x00", 4),
                                                    std::string("\x01\x10\x00\x00", 4),
                                                    std::string("\x00\x00\x10\x00", 4),
                                                    "FLST",
                                                    "key"};
    const std::size_t at = below(bytes.size() + 1);
    const std::size_t length =
        below(std::min<std::size_t>(bytes.size() - std::min(at, bytes.size()), 64) + 1);
    switch (below(7)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 4: {
        const std::string& word = kWords[below(kWords.size())];
        bytes.replace(at, std::min(word.size(), bytes.size() - at), word);
        break;
      }
      case 5:
        bytes.resize(at);
        break;
      default:
        bytes += pool_[below(pool_.size())];
        break;
    }
    if (bytes.size() > kMostBytes) bytes.resize(kMostBytes);
  }

  void keep(const std::string& bytes) {
    if (pool_.size() < kMostKept)
      pool_.push_back(bytes);
    else
      pool_[below(pool_.size())] = bytes;
  }

  std::mt19937_64 random_;
  std::vector<std::string> pool_;
};

}  // namespace fleetrun::fuzz
