#include "comm/gloo/gloo_links.h"

#include <doctest/doctest.h>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/run_world.h"

namespace fleetrun::comm::gloo_links_test {
namespace {

using namespace std::chrono_literals;

// Connections between all of some ranks of this process.
std::vector<std::vector<UniqueFd>> connect(int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<std::vector<UniqueFd>> fds(count);
  for (auto& of_rank : fds) of_rank.resize(count);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) {
      int ends[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
      fds[a][b] = UniqueFd(ends[0]);
      fds[b][a] = UniqueFd(ends[1]);
    }
  return fds;
}

LinkWaits waits(std::chrono::milliseconds deadline = 20s) {
  return {deadline, [] {}, [](LinkPeers, std::chrono::milliseconds) {}};
}

std::string problem_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& problem) {
    return problem.what();
  }
  return "none";
}

TEST_CASE("links: sums of any size, also of fewer elements than ranks, and of more than a socket holds") {
  for (const int ranks : {2, 3, 5}) {
    auto fds = connect(ranks);
    CHECK_NOTHROW(testing::run_ranks(ranks, [&](int rank) {
      GlooLinks links(std::move(fds[static_cast<std::size_t>(rank)]), rank, waits());
      for (const std::size_t count : {0, 1, 2, 4, 999, 70'001, ranks == 2 ? 3'000'001 : 700'001}) {
        std::vector<float> data(count, static_cast<float>(rank + 1));
        links.all_reduce({data.data(), count, DType::f32}, ReduceOp::sum);
        links.barrier();
        for (const float value : data)
          if (value != static_cast<float>(ranks * (ranks + 1) / 2)) throw std::runtime_error("a wrong sum");
        data.assign(count, static_cast<float>(rank + 1));
        links.reduce({data.data(), count, DType::f32}, ReduceOp::max, ranks - 1);
        for (const float value : data)
          if (rank == ranks - 1 && value != static_cast<float>(ranks))
            throw std::runtime_error("a wrong maximum");
      }
    }));
  }
}

TEST_CASE("links: no rank leaves a barrier before every rank has come") {
  constexpr int kRanks = 5;
  auto fds = connect(kRanks);
  std::atomic<int> come = 0;
  CHECK_NOTHROW(testing::run_ranks(kRanks, [&](int rank) {
    GlooLinks links(std::move(fds[static_cast<std::size_t>(rank)]), rank, waits());
    for (int round = 1; round <= 200; ++round) {
      ++come;
      links.barrier();
      if (come < round * kRanks) throw std::runtime_error("left too early");
      links.barrier();
    }
  }));
}

TEST_CASE("links: a rank that does not come is an error at the deadline, one that goes is at once") {
  auto fds = connect(2);
  std::vector<float> data(1000);
  GlooLinks links(std::move(fds[0]), 0, waits(100ms));
  const auto sum = [&] { links.all_reduce({data.data(), data.size(), DType::f32}, ReduceOp::sum); };
  CHECK(problem_of(sum).starts_with("nothing moved for "));
  fds[1].clear();
  CHECK(problem_of(sum).find("nothing moved") == std::string::npos);
}

TEST_CASE("links: who looks after the connections learns whom a rank waits for, and can end the wait") {
  auto fds = connect(3);
  LinkWaits looked = waits();
  LinkPeers seen;
  int sleeps = 0;
  looked.before_sleep = [&] { ++sleeps; };
  looked.look = [&](LinkPeers peers, std::chrono::milliseconds) {
    seen = peers;
    throw std::runtime_error("lost");
  };
  GlooLinks links(std::move(fds[0]), 0, looked);
  float value = 0;
  CHECK(problem_of([&] { links.reduce({&value, 1, DType::f32}, ReduceOp::sum, 0); }) == "lost");
  CHECK(seen.from == 2);
  CHECK(seen.to == -1);
  CHECK(sleeps == 1);
}

}  // namespace
}  // namespace fleetrun::comm::gloo_links_test
