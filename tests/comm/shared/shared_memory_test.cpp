#include "comm/shared/shared_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error/error.h"
#include "comm/communicator_cases.h"
#include "comm/gloo/gloo.h"
#include "comm/rendezvous/memory_store.h"
#include "support/run_world.h"

namespace fleetrun::comm::shared_memory_test {
namespace {

using namespace std::chrono_literals;
using testing::run_world;

// Ranks as threads of this process: each has a segment of its own and opens those of the others.
struct SharedWorld {
  SharedMemoryOptions options_of(int rank) {
    return {.party = {store, rank, size}, .join_deadline = 20s, .collective_deadline = collective_deadline};
  }
  std::unique_ptr<Communicator> join(const SharedMemoryOptions& options) {
    SharedMemoryJoin join = join_shared_memory(options);
    if (!join.communicator) throw std::runtime_error(join.problem);
    return std::move(join.communicator);
  }
  testing::MakeCommunicator make() {
    return [this](int rank) { return join(options_of(rank)); };
  }

  int size = 2;
  std::chrono::milliseconds collective_deadline = 20s;
  MemoryStore store;
};

TEST_CASE("shared memory: every collective, dtype and size") {
  for (const int size : {1, 2, 3, 4}) {
    CAPTURE(size);
    SharedWorld world{.size = size};
    CHECK_NOTHROW(run_world(size, world.make(), [](Communicator& comm) {
      testing::run_all_cases(comm);
      testing::check_reduced_bits(comm);
    }));
  }
}

// Floats in memory of the communicator, or in our own.
struct Floats {
  Floats(Communicator& comm, std::size_t size, bool in_shared_memory) : count(size) {
    if (in_shared_memory)
      memory = comm.allocate(count * sizeof(float));
    else
      own.resize(count);
    data = in_shared_memory ? static_cast<float*>(memory->data()) : own.data();
  }
  BufferView view() const { return {data, count, DType::f32}; }
  BufferView part(std::size_t start, std::size_t size) const { return {data + start, size, DType::f32}; }

  std::size_t count;
  std::unique_ptr<Memory> memory;
  std::vector<float> own;
  float* data;
};

void expect_all(const Floats& floats, std::size_t start, std::size_t count, float wanted, const char* what) {
  const float* begin = floats.data + start;
  if (std::count(begin, begin + count, wanted) != static_cast<std::ptrdiff_t>(count))
    throw std::runtime_error(std::string(what) + " is wrong");
}

// Every collective on buffers of which those of some ranks are shared: in place, staged, and mixed.
void check_places(Communicator& comm, std::size_t count, const std::function<bool(int)>& is_shared) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto self = static_cast<std::size_t>(comm.rank());
  const auto mine_is = static_cast<float>(comm.rank() + 1);
  const auto sum = static_cast<float>(ranks * (ranks + 1) / 2);
  const bool shared = is_shared(comm.rank());

  Floats all(comm, count, shared);
  std::fill_n(all.data, count, mine_is);
  comm.all_reduce(all.view(), ReduceOp::sum);
  expect_all(all, 0, count, sum, "all_reduce");

  for (int root = 0; root < comm.size(); ++root) {
    std::fill_n(all.data, count, mine_is);
    comm.reduce(all.view(), ReduceOp::sum, root);
    if (comm.rank() == root) expect_all(all, 0, count, sum, "reduce");
    std::fill_n(all.data, count, mine_is);
    comm.broadcast(all.view(), root);
    expect_all(all, 0, count, static_cast<float>(root + 1), "broadcast");
  }

  Floats slices(comm, count * ranks, shared);
  std::fill_n(slices.data, slices.count, mine_is);
  comm.reduce_scatter(slices.view(), slices.part(self * count, count), ReduceOp::sum);
  expect_all(slices, self * count, count, sum, "reduce_scatter");

  std::fill_n(slices.data + self * count, count, mine_is);
  comm.all_gather(slices.part(self * count, count), slices.view());
  for (std::size_t rank = 0; rank < ranks; ++rank)
    expect_all(slices, rank * count, count, static_cast<float>(rank + 1), "all_gather");
}

TEST_CASE("shared memory: buffers may be shared, private, or shared on some ranks only") {
  for (const int size : {1, 2, 3, 4}) {
    CAPTURE(size);
    SharedWorld world{.size = size};
    CHECK_NOTHROW(run_world(size, world.make(), [](Communicator& comm) {
      for (const std::size_t count : {0, 1, 17, 1009, 65'536, 200'003}) {
        check_places(comm, count, [](int) { return true; });
        check_places(comm, count, [](int) { return false; });
        check_places(comm, count, [](int rank) { return rank % 2 == 1; });
      }
    }));
  }
}

TEST_CASE("shared memory: a part in the middle of allocated memory is reduced, and nothing beside it") {
  SharedWorld world{.size = 3};
  CHECK_NOTHROW(run_world(3, world.make(), [](Communicator& comm) {
    Floats floats(comm, 20'000, true);
    std::fill_n(floats.data, floats.count, 1.0F);
    comm.all_reduce(floats.part(1003, 17'001), ReduceOp::sum);
    expect_all(floats, 0, 1003, 1, "what is before the part");
    expect_all(floats, 1003, 17'001, 3, "the part");
    expect_all(floats, 18'004, 1996, 1, "what is behind the part");
  }));
}

TEST_CASE("shared memory: memory is zeroed, apart, and may outlive its communicator") {
  SharedWorld world{.size = 2};
  CHECK_NOTHROW(run_world(2, world.make(), [&world](Communicator& comm) {
    for (int i = 0; i < 20; ++i) {
      Floats first(comm, 100'000, true);
      const Floats second(comm, 100'000, true);
      expect_all(first, 0, first.count, 0, "new memory");
      std::fill_n(first.data, first.count, 1.0F);
      comm.all_reduce(first.view(), ReduceOp::sum);
      expect_all(first, 0, first.count, 2, "the sum");
      expect_all(second, 0, second.count, 0, "other memory");
    }
    SharedMemoryOptions options = world.options_of(comm.rank());
    options.name = "another";
    auto another = world.join(options);
    const std::unique_ptr<Memory> memory = another->allocate(1000);
    another.reset();
    static_cast<float*>(memory->data())[249] = 1;
  }));
}

// Numbers of every size, so that rounding shows.
std::vector<float> odd_floats(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::ldexp(1.0F / static_cast<float>(i + 3 + 5 * static_cast<std::size_t>(rank)),
                           static_cast<int>((i * 7 + static_cast<std::size_t>(rank)) % 40) - 20);
  return values;
}

TEST_CASE("shared memory: the sum of two ranks has the bits that Gloo gives it, in place and staged") {
  constexpr std::size_t kCount = 200'003;
  std::vector<float> by_gloo;
  MemoryStore store;
  const RunKey key = make_run_key();
  CHECK_NOTHROW(run_world(
      2,
      [&](int rank) {
        return make_gloo({.party = {store, rank, 2}, .key = key});
      },
      [&](Communicator& comm) {
        std::vector<float> values = odd_floats(comm.rank(), kCount);
        comm.all_reduce({values.data(), kCount, DType::f32}, ReduceOp::sum);
        if (comm.rank() == 0) by_gloo = values;
      }));
  SharedWorld world{.size = 2};
  CHECK_NOTHROW(run_world(2, world.make(), [&](Communicator& comm) {
    for (const bool shared : {true, false}) {
      Floats values(comm, kCount, shared);
      std::ranges::copy(odd_floats(comm.rank(), kCount), values.data);
      comm.all_reduce(values.view(), ReduceOp::sum);
      const auto same_bits = [](float a, float b) {
        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
      };
      if (!std::equal(by_gloo.begin(), by_gloo.end(), values.data, same_bits))
        throw std::runtime_error("other bits than Gloo's");
    }
  }));
}

TEST_CASE("shared memory: four ranks have equal bits, in place and staged") {
  constexpr std::size_t kCount = 100'003;
  SharedWorld world{.size = 4};
  CHECK_NOTHROW(run_world(4, world.make(), [](Communicator& comm) {
    std::vector<float> first;
    for (const bool shared : {true, false}) {
      Floats values(comm, kCount, shared);
      std::ranges::copy(odd_floats(comm.rank(), kCount), values.data);
      comm.all_reduce(values.view(), ReduceOp::sum);
      std::vector<std::int32_t> gathered(4 * kCount);
      comm.all_gather({values.data, kCount, DType::i32}, {gathered.data(), gathered.size(), DType::i32});
      for (std::size_t rank = 1; rank < 4; ++rank)
        if (!std::equal(gathered.begin(), gathered.begin() + kCount, gathered.begin() + rank * kCount))
          throw std::runtime_error("ranks have different bits");
      if (first.empty()) first.assign(values.data, values.data + kCount);
      if (!std::equal(first.begin(), first.end(), values.data))
        throw std::runtime_error("in place and staged differ");
    }
  }));
}

Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("nothing was thrown");
}

void all_reduce(Communicator& comm, std::size_t count) {
  std::vector<float> buffer(count, 1.0F);
  comm.all_reduce({buffer.data(), count, DType::f32}, ReduceOp::sum);
  if (count > 0 && buffer.back() != static_cast<float>(comm.size())) throw std::runtime_error("a wrong sum");
}

TEST_CASE("shared memory: a rank that leaves in mid-training is named by every other, with the collective") {
  SharedWorld world{.size = 4};
  std::atomic<int> named = 0;
  run_world(4, world.make(), [&](Communicator& comm) {
    all_reduce(comm, 1000);
    if (comm.rank() == 2) return;
    const Error error = error_of([&] { all_reduce(comm, 1000); });
    const std::string start = "rank " + std::to_string(comm.rank()) +
                              ": collective 2, all_reduce of 1000 f32 (sum): waited for rank 2 (";
    if (error.message().rfind(start, 0) == 0 && error.exit_code() == 75) ++named;
    // From now on nothing works, and it says the same.
    if (error_of([&] { comm.barrier(); }).message() == error.message()) ++named;
  });
  CHECK(named == 6);
}

TEST_CASE("shared memory: a rank that leaves while data flows is an error of the others") {
  SharedWorld world{.size = 3};
  std::atomic<int> failed = 0;
  run_world(3, world.make(), [&](Communicator& comm) {
    for (int i = 0; i < 5; ++i) all_reduce(comm, 300'000);
    if (comm.rank() == 1) return;
    const Error error = error_of([&] {
      for (int i = 0; i < 1000; ++i) all_reduce(comm, 300'000);
    });
    if (error.message().find("waited for rank 1 (") != std::string::npos) ++failed;
  });
  CHECK(failed == 2);
}

TEST_CASE("shared memory: a rank that does not come is named at the deadline, with what it did last") {
  SharedWorld world{.size = 3, .collective_deadline = 200ms};
  std::latch others_failed(2);
  std::atomic<int> named = 0;
  run_world(3, world.make(), [&](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 1) {
      others_failed.wait();
      // The others waited at the barrier that it missed. At the next one it learns why it is alone.
      comm.barrier();
      const std::string late = error_of([&] { comm.barrier(); }).message();
      if (late.find("failed in collective 2, where it waited for this rank") != std::string::npos) ++named;
      return;
    }
    const std::string error = error_of([&] { comm.barrier(); }).message();
    others_failed.count_down();
    // One of the two comes first; the other may find that it failed.
    if (error.find(
            "collective 2, barrier: waited for rank 1 (nothing for 0.2 s; last seen in collective 1)") !=
            std::string::npos ||
        error.find("collective 2, barrier: waited for rank 1 (so did rank") != std::string::npos)
      ++named;
  });
  CHECK(named == 3);
}

TEST_CASE("shared memory: ranks that call different collectives learn it, and nobody hangs") {
  using Call = std::function<void(Communicator&)>;
  std::vector<float> floats(100'000);
  std::vector<std::int32_t> ints(100);
  const auto buffer = [&](std::size_t count) { return BufferView{floats.data(), count, DType::f32}; };
  const Call usual = [&](Communicator& comm) { comm.all_reduce(buffer(100), ReduceOp::sum); };
  const Call others[] = {
      [](Communicator& comm) { comm.barrier(); },
      [&](Communicator& comm) { comm.all_reduce(buffer(100'000), ReduceOp::sum); },
      [&](Communicator& comm) { comm.all_reduce(buffer(100), ReduceOp::max); },
      [&](Communicator& comm) {
        comm.all_reduce({ints.data(), 100, DType::i32}, ReduceOp::sum);
      },
      [&](Communicator& comm) { comm.broadcast(buffer(100), 0); },
  };
  for (const Call& other : others) {
    SharedWorld world{.size = 3};
    std::atomic<int> named = 0;
    run_world(3, world.make(), [&](Communicator& comm) {
      comm.barrier();
      const Error error = error_of([&] { (comm.rank() == 2 ? other : usual)(comm); });
      const std::string wanted = comm.rank() == 2 ? "but rank 0 calls all_reduce of 100 f32 (sum)"
                                                  : "is all_reduce of 100 f32 (sum), but rank 2 calls ";
      if (error.kind() == ErrorKind::internal && error.message().find(wanted) != std::string::npos) ++named;
    });
    CHECK(named == 3);
  }
}

TEST_CASE("shared memory: several communicators of the same ranks do not disturb each other") {
  SharedWorld world{.size = 2};
  CHECK_NOTHROW(testing::run_ranks(2, [&](int rank) {
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (int i = 0; i < 3; ++i) {
      SharedMemoryOptions options = world.options_of(rank);
      options.name = std::to_string(i);
      communicators.push_back(world.join(options));
    }
    testing::run_ranks(3, [&](int i) {
      for (int round = 0; round < 100; ++round)
        check_places(*communicators[static_cast<std::size_t>(i)], 10'007, [&](int) { return i == 1; });
    });
  }));
}

TEST_CASE("shared memory: ranks that never came are named when the deadline for joining has passed") {
  SharedWorld world{.size = 4};
  SharedMemoryOptions options = world.options_of(1);
  options.join_deadline = 100ms;
  const Error error = error_of([&] { join_shared_memory(options); });
  CHECK(error.message() == "rank 1 waited 0.1 s for rank 0, 2, 3 to bring \"shared memory 0 start\"");
}

// A rank whose segment cannot be opened by the others: what it brings names another process's descriptor.
class LyingStore : public Store {
 public:
  LyingStore(Store& store, std::string key, std::string value)
      : store_(store), key_(std::move(key)), value_(std::move(value)) {}
  void set(const std::string& key, const std::string& value) override {
    store_.set(key, key.ends_with(key_) ? value_ : value);
  }
  std::string get(const std::string& key, Deadline deadline) override { return store_.get(key, deadline); }
  std::optional<std::string> look(const std::string& key) override { return store_.look(key); }

 private:
  Store& store_;
  const std::string key_;
  const std::string value_;
};

TEST_CASE("shared memory that one rank cannot open is used by none, and all say why") {
  const std::string secret(64, 'a');
  for (const std::string& value : {secret + " 1 999999", secret + " 0 0", std::string("nonsense")}) {
    CAPTURE(value);
    SharedWorld world{.size = 3};
    LyingStore liar(world.store, "start/2", value);
    std::vector<std::string> problems(3);
    testing::run_ranks(3, [&](int rank) {
      Store& store = rank == 2 ? static_cast<Store&>(liar) : world.store;
      const SharedMemoryJoin join = join_shared_memory({.party = {store, rank, 3}, .join_deadline = 20s});
      problems[static_cast<std::size_t>(rank)] = join.communicator ? "joined" : join.problem;
    });
    CHECK(problems[0].starts_with("rank 0 says: "));
    CHECK(problems[1] == problems[0]);
    CHECK(problems[2] == problems[0]);
  }
}

}  // namespace
}  // namespace fleetrun::comm::shared_memory_test
