// What memory allows: the barest all-reduce of f32 between forked ranks, without checks, errors or sleep.
//   shared_memory_floor shared|private RANKS BYTES ROUNDS      prints "MEDIAN P90 MIN" in microseconds
//   shared: the data lies in memory of all; each rank sums a slice and writes it to everybody.
//   private: each rank copies a chunk to where all see it, and sums the chunks of all into its own buffer.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct alignas(128) Count {
  std::atomic<std::uint64_t> value;
};

int ranks, self;
Count* counts;

void meet() {
  static std::uint64_t meeting = 0;
  counts[self].value.store(++meeting, std::memory_order_release);
  for (int other = 0; other < ranks; ++other)
    for (int looks = 0; counts[other].value.load(std::memory_order_acquire) < meeting; ++looks)
      if (looks > (ranks > 2 ? 20 : 20000))
        ::sched_yield();
      else
        __builtin_ia32_pause();
}

typedef float Vector __attribute__((vector_size(64)));
constexpr std::size_t kLanes = 16;

Vector sum_at(float** from, std::size_t i) {
  Vector sum = *reinterpret_cast<Vector*>(from[0] + i);
  for (int other = 1; other < ranks; ++other) sum += *reinterpret_cast<Vector*>(from[other] + i);
  return sum;
}

void in_place(float** data, std::size_t count) {
  const std::size_t part = (count / ranks + kLanes - 1) / kLanes * kLanes;
  const std::size_t begin = std::min(count, part * self);
  const std::size_t end = std::min(count, begin + part);
  meet();
  for (std::size_t i = begin; i < end; i += kLanes) {
    const Vector sum = sum_at(data, i);
    for (int other = 0; other < ranks; ++other) *reinterpret_cast<Vector*>(data[other] + i) = sum;
  }
  meet();
}

void copied(float** stages, float* data, std::size_t count) {
  constexpr std::size_t kChunk = 65536;  // floats
  std::vector<float*> half(ranks);
  for (std::size_t start = 0, turn = 0; start < count; start += kChunk, turn ^= 1) {
    const std::size_t chunk = std::min(kChunk, count - start);
    for (int other = 0; other < ranks; ++other) half[other] = stages[other] + turn * kChunk;
    std::memcpy(half[self], data + start, chunk * sizeof(float));
    meet();
    for (std::size_t i = 0; i < chunk; i += kLanes)
      *reinterpret_cast<Vector*>(data + start + i) = sum_at(half.data(), i);
  }
}

}  // namespace

int main(int, char** argv) {
  const bool shared = std::string(argv[1]) == "shared";
  ranks = std::atoi(argv[2]);
  const std::size_t bytes = std::strtoull(argv[3], nullptr, 10);
  const int rounds = std::atoi(argv[4]);
  const std::size_t room = std::max<std::size_t>(bytes, 1 << 20);
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, 65536 + room * ranks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  counts = reinterpret_cast<Count*>(memory);
  std::vector<float*> data(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    data[rank] = reinterpret_cast<float*>(memory + 65536 + room * rank);
  while (++self < ranks && ::fork() != 0) {
  }
  self %= ranks;  // the parent is rank 0
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(self % static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), &core);
  ::sched_setaffinity(0, sizeof(core), &core);
  std::memset(data[self], 0, room);
  auto* own = static_cast<float*>(std::aligned_alloc(4096, room));
  std::memset(own, 0, room);

  std::vector<double> times;
  for (int round = -20; round < rounds; ++round) {
    meet();
    const auto start = std::chrono::steady_clock::now();
    if (shared)
      in_place(data.data(), bytes / sizeof(float));
    else
      copied(data.data(), own, bytes / sizeof(float));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (round >= 0) times.push_back(took.count());
  }
  if (self != 0) return 0;
  while (::wait(nullptr) > 0) {
  }
  std::sort(times.begin(), times.end());
  std::printf("%.3f %.3f %.3f\n", times[times.size() / 2], times[times.size() * 9 / 10], times[0]);
}
