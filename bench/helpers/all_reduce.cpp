// Times all_reduce of f32 sums between forked ranks, one on each core in turn:
//   bench_all_reduce TRANSPORT RANKS BYTES ROUNDS [NAMESPACE=ADDRESS ...]
//     TRANSPORT: shared (memory of the communicator, shared), private (memory of each rank alone, shared memory between),
//                gloo (our path over TCP), two (the same, over two connections at once), leader or scatter (shared memory inside each namespace, Gloo between them)
//     NAMESPACE=ADDRESS: a network namespace of `ip netns` that plays a host, and its address; each gets as many
//                consecutive ranks. Without any, all ranks are on this host.
// Prints "MEDIAN P90 MIN" in microseconds, as rank 0 saw them.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

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
#include "comm/collective/collective_communicator.h"
#include "comm/collective/hierarchical.h"
#include "comm/gloo/gloo.h"
#include "comm/shared/shared_memory.h"
#include "host_ranks.h"

namespace fleetrun::comm {
namespace {

using Clock = std::chrono::steady_clock;

struct Host {
  std::string name;  // of the namespace
  std::string address;
};

struct Arguments {
  std::string transport;
  int ranks = 2;
  std::size_t bytes = 0;
  int rounds = 0;
  std::vector<Host> hosts;

  int ranks_of_host() const { return hosts.empty() ? ranks : ranks / static_cast<int>(hosts.size()); }
  const Host& host_of(int rank) const { return hosts.at(static_cast<std::size_t>(rank / ranks_of_host())); }
};

void enter(const Host& host) {
  const int space = ::open(("/run/netns/" + host.name).c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || ::setns(space, CLONE_NEWNET) != 0) throw std::runtime_error("cannot enter " + host.name);
  ::close(space);
}

// Sums half of a buffer over each of two communicators.
class TwoConnections : public CollectiveCommunicator {
 public:
  TwoConnections(std::unique_ptr<Communicator> one, std::unique_ptr<Communicator> other)
      : CollectiveCommunicator(one->rank(), one->size()), one_(std::move(one)), other_(std::move(other)) {}

 private:
  void run(const Collective& collective, std::uint64_t) override {
    if (collective.kind == Collective::Kind::barrier) return one_->barrier();
    const BufferView all = collective.buffer;
    const std::size_t half = all.count / 2;
    std::thread second([&] {
      other_->all_reduce({all.as<float>() + half, all.count - half, all.dtype}, collective.op);
    });
    one_->all_reduce({all.data, half, all.dtype}, collective.op);
    second.join();
  }

  const std::unique_ptr<Communicator> one_, other_;
};

std::unique_ptr<Communicator> connect_host(const Party& party, const std::string& name) {
  SharedMemoryJoin join = join_shared_memory({.party = party, .name = name});
  if (!join.communicator) throw std::runtime_error(join.problem);
  return std::move(join.communicator);
}

std::unique_ptr<Communicator> connect(const Arguments& arguments, const Party& party, const RunKey& key) {
  const std::string& transport = arguments.transport;
  const std::string address = arguments.hosts.empty() ? "127.0.0.1" : arguments.host_of(party.rank).address;
  const auto connect_hosts = [&](const Party& some, const std::string& name) {
    return make_gloo({.party = some, .key = key, .address = address, .name = name});
  };
  if (transport == "gloo") return connect_hosts(party, "0");
  if (transport == "two")
    return std::make_unique<TwoConnections>(connect_hosts(party, "0"), connect_hosts(party, "1"));
  if (transport == "shared" || transport == "private") return connect_host(party, "0");
  const int of_host = arguments.ranks_of_host();
  return make_hierarchical(
      {.party = party,
       .group_size = of_host,
       .algorithm = transport == "leader" ? HierarchicalAlgorithm::leader : HierarchicalAlgorithm::scatter},
      [&](const Party& some, const std::string& name) {
        return some.names[1] - some.names[0] == 1 ? connect_host(some, name) : connect_hosts(some, name);
      });
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
  ::sched_setaffinity(0, sizeof(core), &core);

  if (!arguments.hosts.empty()) enter(arguments.host_of(rank));
  bench::FolderStore store(folder);
  const auto comm = connect(arguments, {store, rank, arguments.ranks}, key);
  const std::size_t count = arguments.bytes / sizeof(float);
  const auto memory = arguments.transport == "private" ? make_aligned_memory(arguments.bytes)
                                                       : comm->allocate(arguments.bytes);
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
  if (argc < 5) {
    std::fputs("usage: bench_all_reduce TRANSPORT RANKS BYTES ROUNDS [NAMESPACE=ADDRESS ...]\n", stderr);
    return 2;
  }
  fleetrun::comm::Arguments arguments = {
      argv[1], std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 10), std::atoi(argv[4]), {}};
  for (int i = 5; i < argc; ++i) {
    const std::string host = argv[i];
    arguments.hosts.push_back({host.substr(0, host.find('=')), host.substr(host.find('=') + 1)});
  }
  return fleetrun::comm::run(arguments);
}
