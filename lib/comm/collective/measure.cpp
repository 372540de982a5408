#include "comm/collective/measure.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "base/error/error.h"
#include "base/number/half.h"

namespace fleetrun::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int kWarmUp = 5;
constexpr int kLeastRounds = 20, kMostRounds = 2000;
constexpr double kAimedTime = 333e3;  // microseconds

double time_one(Communicator& comm, BufferView buffer) {
  const auto start = Clock::now();
  comm.all_reduce(buffer, ReduceOp::sum);
  return Microseconds(Clock::now() - start).count();
}

// What rank 0 thinks that the time allows: every rank must do as many.
int choose_rounds(Communicator& comm, double time_of_one) {
  auto rounds = static_cast<std::int32_t>(
      std::clamp(kAimedTime / std::max(time_of_one, 1e-3), double{kLeastRounds}, double{kMostRounds}));
  comm.broadcast({&rounds, 1, DType::i32}, 0);
  return rounds;
}

// 1, 2 and 3, one after the other. Every dtype holds the sums of so many of them exactly; bf16 has the integers up to 256.
constexpr std::size_t kValues = 3, kMostSummed = 85;

// More ranks take turns: each has 0 in the elements of the others. So no partial sum is rounded, and no rank's part can be
// left out unseen.
std::size_t turns_of(int ranks) { return (static_cast<std::size_t>(ranks) + kMostSummed - 1) / kMostSummed; }

int value_of(int rank, std::size_t index, std::size_t turns) {
  const auto number = static_cast<std::size_t>(rank);
  return index % turns == number % turns ? 1 + static_cast<int>((index / turns + number) % kValues) : 0;
}

template <typename T, typename FromInt>
std::int64_t count_wrong_as(Communicator& comm, BufferView buffer, FromInt from_int) {
  T* data = buffer.as<T>();
  const std::size_t turns = turns_of(comm.size());
  for (std::size_t i = 0; i < buffer.count; ++i) data[i] = from_int(value_of(comm.rank(), i, turns));
  comm.all_reduce(buffer, ReduceOp::sum);
  std::vector<T> wanted(kValues * turns);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    int sum = 0;
    for (int rank = 0; rank < comm.size(); ++rank) sum += value_of(rank, i, turns);
    wanted[i] = from_int(sum);
  }
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < buffer.count; ++i) wrong += data[i] != wanted[i % wanted.size()];
  return wrong;
}

std::int64_t count_wrong(Communicator& comm, BufferView buffer) {
  switch (buffer.dtype) {
    case DType::f32:
      return count_wrong_as<float>(comm, buffer, [](int value) { return static_cast<float>(value); });
    case DType::f16:
      return count_wrong_as<std::uint16_t>(comm, buffer,
                                           [](int value) { return f32_to_f16(static_cast<float>(value)); });
    case DType::bf16:
      return count_wrong_as<std::uint16_t>(comm, buffer,
                                           [](int value) { return f32_to_bf16(static_cast<float>(value)); });
    case DType::i32:
      return count_wrong_as<std::int32_t>(comm, buffer, [](int value) { return value; });
    case DType::i64:
      return count_wrong_as<std::int64_t>(comm, buffer, [](int value) { return std::int64_t{value}; });
    case DType::u8:
      break;
  }
  throw Error(ErrorKind::internal, "all_reduce of u8 is not measured");
}

double mean_over_ranks(Communicator& comm, double microseconds) {
  auto nanoseconds = static_cast<std::int64_t>(microseconds * 1e3);
  comm.all_reduce({&nanoseconds, 1, DType::i64}, ReduceOp::sum);
  return static_cast<double>(nanoseconds) / 1e3 / comm.size();
}

}  // namespace

Measured measure_all_reduce(Communicator& comm, const MeasureOptions& options) {
  const std::size_t count = options.bytes / size_of(options.dtype);
  const auto memory = comm.allocate(options.bytes);
  const BufferView buffer{memory->data(), count, options.dtype};
  double warm = 0;
  for (int i = 0; i < kWarmUp; ++i) warm = time_one(comm, buffer);
  const int rounds = options.rounds > 0 ? options.rounds : choose_rounds(comm, warm);

  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    options.before_each();
    times.push_back(time_one(comm, buffer));
  }
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / rounds;
  std::sort(times.begin(), times.end());
  Measured measured = {.bytes = options.bytes,
                       .count = count,
                       .rounds = rounds,
                       .mean = mean_over_ranks(comm, mean),
                       .median = mean_over_ranks(comm, times[times.size() / 2]),
                       .p90 = mean_over_ranks(comm, times[times.size() * 9 / 10]),
                       .least = mean_over_ranks(comm, times.front()),
                       .wrong = count_wrong(comm, buffer)};
  comm.all_reduce({&measured.wrong, 1, DType::i64}, ReduceOp::sum);
  return measured;
}

}  // namespace fleetrun::comm
