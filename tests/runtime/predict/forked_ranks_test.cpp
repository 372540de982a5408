#include "runtime/predict/forked_ranks.h"

#include <doctest/doctest.h>

#include <csignal>
#include <stdexcept>

#include "runtime/data/expect_error.h"

namespace fleetrun::runtime::forked_ranks_test {
namespace {

TEST_CASE("each rank sends its answers in its order") {
  ForkedRanks ranks(2, [](int rank, const SendAnswer& send) {
    for (int i = 0; i < 3; ++i) send({std::to_string(10 * rank + i), {"p", ""}});
  });
  for (int i = 0; i < 3; ++i)
    for (int rank = 0; rank < 2; ++rank) {
      const BatchAnswer answer = ranks.next(rank);
      CHECK(answer.lines == std::to_string(10 * rank + i));
      CHECK(answer.problems == std::vector<std::string>{"p", ""});
    }
}

TEST_CASE("an error of a rank is thrown with its number, after what it has sent") {
  ForkedRanks ranks(1, [](int, const SendAnswer& send) {
    send({"", {}});
    throw Error(ErrorKind::config, "too few threads", "raise ulimit -u");
  });
  CHECK(ranks.next(0).lines.empty());
  const Error error = error_of([&] { ranks.next(0); });
  CHECK(error.kind() == ErrorKind::config);
  CHECK(error.message() == "rank 0: too few threads");
  CHECK(error.hint() == "raise ulimit -u");
}

TEST_CASE("a rank that ends without an answer is an error that says how it ended") {
  ForkedRanks ranks(2, [](int rank, const SendAnswer&) {
    if (rank == 1) ::raise(SIGKILL);
    throw std::logic_error("surprise");
  });
  check_error(ErrorKind::internal, "surprise", [&] { ranks.next(0); });
  check_error(ErrorKind::os, "rank 1 ended by the signal Killed", [&] { ranks.next(1); });
}

}  // namespace
}  // namespace fleetrun::runtime::forked_ranks_test
