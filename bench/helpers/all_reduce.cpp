// Times all_reduce of f32 sums between forked ranks, one on each core in turn:
//   bench_all_reduce TRANSPORT RANKS BYTES ROUNDS
//     TRANSPORT: shared (memory of the communicator, shared), private (memory of each rank alone, shared memory between),
//                gloo (memory of each rank alone, Gloo over loopback)
// Prints "MEDIAN P90 MIN" in microseconds, as rank 0 saw them.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/run/run_key.h"
#include "comm/collective/aligned_memory.h"
#include "comm/gloo/gloo.h"
#include "comm/shared/shared_memory.h"
#include "host_ranks.h"

namespace fleetrun::comm {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string transport;
  int ranks = 2;
  std::size_t bytes = 0;
  int rounds = 0;
};

std::unique_ptr<Communicator> connect(const Arguments& arguments, const Party& party, const RunKey& key) {
  if (arguments.transport == "gloo") return make_gloo({.party = party, .key = key});
  SharedMemoryJoin join = join_shared_memory({.party = party});
  if (!join.communicator) throw std::runtime_error(join.problem);
  return std::move(join.communicator);
}

void check_sum(Communicator& comm, BufferView buffer) {
  std::fill_n(buffer.as<float>(), buffer.count, static_cast<float>(comm.rank() + 1));
  comm.all_reduce(buffer, ReduceOp::sum);
  const auto wanted = static_cast<float>(comm.size() * (comm.size() + 1) / 2);
  if (std::count(buffer.as<float>(), buffer.as<float>() + buffer.count, wanted) !=
      static_cast<std::ptrdiff_t>(buffer.count))
    throw std::runtime_error("a wrong sum");
  std::fill_n(buffer.as<float>(), buffer.count, 0.0F);
}

std::vector<double> time_rounds(Communicator& comm, BufferView buffer, int rounds) {
  constexpr int kWarmUp = 20;  // rounds: until TCP has its windows and pages are there
  std::vector<double> microseconds;
  for (int round = -kWarmUp; round < rounds; ++round) {
    comm.barrier();
    const auto start = Clock::now();
    comm.all_reduce(buffer, ReduceOp::sum);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (round >= 0) microseconds.push_back(took.count());
  }
  std::sort(microseconds.begin(), microseconds.end());
  return microseconds;
}

void run_rank(const Arguments& arguments, int rank, const RunKey& key, const std::string& folder) {
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(static_cast<unsigned>(rank) % std::thread::hardware_concurrency(), &core);
  if (arguments.transport != "gloo") ::sched_setaffinity(0, sizeof(core), &core);  // Gloo has more threads

  bench::FolderStore store(folder);
  const auto comm = connect(arguments, {store, rank, arguments.ranks}, key);
  const std::size_t count = arguments.bytes / sizeof(float);
  const auto memory = arguments.transport == "shared" ? comm->allocate(arguments.bytes)
                                                      : make_aligned_memory(arguments.bytes);
  const BufferView buffer{memory->data(), count, DType::f32};
  check_sum(*comm, buffer);
  const std::vector<double> times = time_rounds(*comm, buffer, arguments.rounds);
  if (rank == 0)
    fmt::print("{:.3f} {:.3f} {:.3f}\n", times[times.size() / 2], times[times.size() * 9 / 10], times[0]);
}

int run(const Arguments& arguments) {
  const bench::TemporaryFolder folder;
  const RunKey key = make_run_key();
  return bench::fork_ranks(arguments.ranks, [&](int rank) { run_rank(arguments, rank, key, folder.path()); });
}

}  // namespace
}  // namespace fleetrun::comm

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: bench_all_reduce shared|private|gloo RANKS BYTES ROUNDS\n", stderr);
    return 2;
  }
  return fleetrun::comm::run(
      {argv[1], std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 10), std::atoi(argv[4])});
}
