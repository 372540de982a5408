#include "comm/communicator_cases.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/number/half.h"
#include "comm/collective/solo.h"
#include "support/run_world.h"

namespace fleetrun::testing {
namespace {

using comm::Communicator;
using comm::ReduceOp;

constexpr std::size_t kLarge = 100'000;
constexpr std::size_t kSizes[] = {0, 1, 7, 1009, kLarge};
constexpr std::size_t kLargePart =
    20'011;  // of one rank, where every rank has a part of what is gathered or scattered
constexpr DType kReducible[] = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64};
constexpr DType kAll[] = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
constexpr std::size_t kPeriod = 11;  // of the elements' values
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::max, ReduceOp::min};

// Buffers of this thread that wait for their next use. The thread sanitizer maps memory of its own for each new large buffer, which
// would take most of the time.
thread_local std::vector<std::vector<std::byte>> spare_buffers;

// With whatever the last use left in it.
std::vector<std::byte> take_buffer(std::size_t bytes) {
  std::vector<std::byte> buffer;
  if (!spare_buffers.empty()) {
    buffer = std::move(spare_buffers.back());
    spare_buffers.pop_back();
  }
  buffer.resize(bytes);
  return buffer;
}

// Elements of any dtype, written and read as small whole numbers, which every dtype holds exactly.
class Elements {
 public:
  Elements(DType dtype, std::size_t count)
      : bytes_(take_buffer(count * size_of(dtype) + 1)), view_{bytes_.data(), count, dtype} {}
  ~Elements() { spare_buffers.push_back(std::move(bytes_)); }
  Elements(Elements&&) = default;

  BufferView view() { return view_; }
  BufferView slice(int index, std::size_t count) {
    return {bytes_.data() + static_cast<std::size_t>(index) * count * size_of(view_.dtype), count,
            view_.dtype};
  }

  void set(std::size_t i, int value) {
    switch (view_.dtype) {
      case DType::f32:
        return put(i, static_cast<float>(value));
      case DType::f16:
        return put(i, f32_to_f16(static_cast<float>(value)));
      case DType::bf16:
        return put(i, f32_to_bf16(static_cast<float>(value)));
      case DType::i32:
        return put(i, static_cast<std::int32_t>(value));
      case DType::i64:
        return put(i, static_cast<std::int64_t>(value));
      case DType::u8:
        return put(i, static_cast<std::uint8_t>(value));
    }
  }
  int get(std::size_t i) const {
    switch (view_.dtype) {
      case DType::f32:
        return static_cast<int>(take<float>(i));
      case DType::f16:
        return static_cast<int>(f16_to_f32(take<std::uint16_t>(i)));
      case DType::bf16:
        return static_cast<int>(bf16_to_f32(take<std::uint16_t>(i)));
      case DType::i32:
        return take<std::int32_t>(i);
      case DType::i64:
        return static_cast<int>(take<std::int64_t>(i));
      case DType::u8:
        return take<std::uint8_t>(i);
    }
    return -1;
  }

  // Sets `count` elements from `start` on to value(0), value(1), ..., which repeat after kPeriod of them. Copies whole periods:
  // under sanitizers a call for each element takes minutes.
  template <typename Value>
  void fill(std::size_t start, std::size_t count, const Value& value) {
    for (std::size_t i = 0; i < std::min(count, kPeriod); ++i) set(start + i, value(i));
    const std::size_t bytes = count * size_of(view_.dtype);
    std::byte* const first = bytes_.data() + start * size_of(view_.dtype);
    for (std::size_t done = kPeriod * size_of(view_.dtype); done < bytes; done *= 2)
      std::memcpy(first + done, first, std::min(done, bytes - done));
  }
  // Whether the elements from `start` on have the bits that fill(start, count, value) gives them. Looks at each element twice at most.
  template <typename Value>
  bool is_filled(std::size_t start, std::size_t count, const Value& value) const {
    Elements period(view_.dtype, std::min(count, kPeriod));
    period.fill(0, period.view_.count, value);
    const std::byte* const first = bytes_.data() + start * size_of(view_.dtype);
    if (std::memcmp(first, period.bytes_.data(), period.view_.bytes()) != 0) return false;
    const std::size_t bytes = count * size_of(view_.dtype);
    return std::memcmp(first, first + period.view_.bytes(), bytes - period.view_.bytes()) == 0;
  }

 private:
  template <typename T>
  void put(std::size_t i, T value) {
    std::memcpy(bytes_.data() + i * sizeof(T), &value, sizeof(T));
  }
  template <typename T>
  T take(std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
    return value;
  }

  std::vector<std::byte> bytes_;
  BufferView view_;
};

// What rank r has at place i: small enough for the sum of four ranks to be exact in bf16.
int value_of(int rank, std::size_t i) {
  return static_cast<int>((i + 3 * static_cast<std::size_t>(rank)) % kPeriod);
}

int reduced(int size, std::size_t i, ReduceOp op) {
  int result = value_of(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const int value = value_of(rank, i);
    if (op == ReduceOp::sum) result += value;
    if (op == ReduceOp::max) result = std::max(result, value);
    if (op == ReduceOp::min) result = std::min(result, value);
  }
  return result;
}

// `where` is only put into words when something is wrong.
void expect(int found, int wanted, const Communicator& comm, const char* where, std::size_t index = 0) {
  if (found != wanted)
    throw std::runtime_error(fmt::format("rank {} of {}: {} {} is {}, wanted {}", comm.rank(), comm.size(),
                                         where, index, found, wanted));
}

// The elements from `start` on are value(0), value(1), ..., which repeat after kPeriod of them.
template <typename Value>
void expect_elements(const Elements& found, std::size_t start, std::size_t count, const Value& value,
                     const Communicator& comm) {
  if (found.is_filled(start, count, value)) return;
  for (std::size_t i = 0; i < count; ++i) expect(found.get(start + i), value(i), comm, "element", start + i);
  throw std::runtime_error(
      fmt::format("rank {} of {}: values are right, their bits are not", comm.rank(), comm.size()));
}

Elements make_zeros(DType dtype, std::size_t count) {
  Elements elements(dtype, count);
  if (count > 0) std::memset(elements.view().data, 0, elements.view().bytes());
  return elements;
}

Elements make_own(const Communicator& comm, DType dtype, std::size_t count) {
  Elements elements(dtype, count);
  elements.fill(0, count, [&comm](std::size_t i) { return value_of(comm.rank(), i); });
  return elements;
}

// What a reduction has at `first` and the places after it.
auto reduced_from(std::size_t first, const Communicator& comm, ReduceOp op) {
  return [first, size = comm.size(), op](std::size_t i) { return reduced(size, first + i, op); };
}

void all_reduce_case(Communicator& comm, DType dtype, std::size_t count, ReduceOp op) {
  Elements own = make_own(comm, dtype, count);
  comm.all_reduce(own.view(), op);
  expect_elements(own, 0, count, reduced_from(0, comm, op), comm);
}

// All ranks, or the first and the last for what takes long under sanitizers.
std::vector<int> roots_of(const Communicator& comm, std::size_t count) {
  std::vector<int> roots = {0};
  for (int rank = count < kLarge ? 1 : comm.size() - 1; rank < comm.size(); ++rank)
    if (rank > 0) roots.push_back(rank);
  return roots;
}

void reduce_case(Communicator& comm, DType dtype, std::size_t count, ReduceOp op) {
  for (const int root : roots_of(comm, count)) {
    Elements own = make_own(comm, dtype, count);
    comm.reduce(own.view(), op, root);
    if (comm.rank() == root) expect_elements(own, 0, count, reduced_from(0, comm, op), comm);
  }
}

void reduce_scatter_case(Communicator& comm, DType dtype, std::size_t count, ReduceOp op) {
  Elements own = make_own(comm, dtype, count * static_cast<std::size_t>(comm.size()));
  Elements mine = make_zeros(dtype, count);
  comm.reduce_scatter(own.view(), mine.view(), op);
  expect_elements(mine, 0, count, reduced_from(count * static_cast<std::size_t>(comm.rank()), comm, op),
                  comm);
}

void reduce_scatter_in_place_case(Communicator& comm, DType dtype, std::size_t count) {
  Elements own = make_own(comm, dtype, count * static_cast<std::size_t>(comm.size()));
  comm.reduce_scatter(own.view(), own.slice(comm.rank(), count), ReduceOp::sum);
  const std::size_t start = count * static_cast<std::size_t>(comm.rank());
  expect_elements(own, start, count, reduced_from(start, comm, ReduceOp::sum), comm);
}

void broadcast_case(Communicator& comm, DType dtype, std::size_t count) {
  for (const int root : roots_of(comm, count)) {
    Elements own = make_own(comm, dtype, count);
    comm.broadcast(own.view(), root);
    expect_elements(
        own, 0, count, [root](std::size_t i) { return value_of(root, i); }, comm);
  }
}

void expect_gathered(Elements& all, std::size_t count, const Communicator& comm) {
  for (int rank = 0; rank < comm.size(); ++rank)
    expect_elements(
        all, static_cast<std::size_t>(rank) * count, count,
        [rank](std::size_t i) { return value_of(rank, i); }, comm);
}

void all_gather_case(Communicator& comm, DType dtype, std::size_t count) {
  Elements mine = make_own(comm, dtype, count);
  Elements all = make_zeros(dtype, count * static_cast<std::size_t>(comm.size()));
  comm.all_gather(mine.view(), all.view());
  expect_gathered(all, count, comm);
}

void all_gather_in_place_case(Communicator& comm, DType dtype, std::size_t count) {
  Elements all = make_zeros(dtype, count * static_cast<std::size_t>(comm.size()));
  const std::size_t start = count * static_cast<std::size_t>(comm.rank());
  all.fill(start, count, [&comm](std::size_t i) { return value_of(comm.rank(), i); });
  comm.all_gather(all.slice(comm.rank(), count), all.view());
  expect_gathered(all, count, comm);
}

// Sums that depend on their order: all ranks must still have the same bits, and the same again the next time.
void same_bits_case(Communicator& comm, std::size_t count) {
  std::vector<float> first(count);
  for (std::size_t i = 0; i < count; ++i)
    first[i] = 1.0F / static_cast<float>(1 + i + 7 * static_cast<std::size_t>(comm.rank()));
  std::vector<float> second = first;
  comm.all_reduce({first.data(), count, DType::f32}, ReduceOp::sum);
  comm.all_reduce({second.data(), count, DType::f32}, ReduceOp::sum);
  std::vector<float> all(count * static_cast<std::size_t>(comm.size()));
  comm.all_gather({first.data(), count, DType::f32}, {all.data(), all.size(), DType::f32});
  for (int rank = 0; rank < comm.size(); ++rank) {
    const float* const theirs = all.data() + static_cast<std::size_t>(rank) * count;
    const bool same = count == 0 || std::memcmp(theirs, second.data(), count * sizeof(float)) == 0;
    expect(same, true, comm, "having the bits of rank", static_cast<std::size_t>(rank));
  }
}

void barriers_case(Communicator& comm) {
  const std::uint64_t before = comm.collectives();
  for (int i = 0; i < 20; ++i) comm.barrier();
  expect(static_cast<int>(comm.collectives() - before), 20, comm, "the number of collectives");
}

void memory_case(Communicator& comm) {
  const auto memory = comm.allocate(4096 + 4);
  const BufferView view{memory->data(), 1025, DType::f32};
  expect(static_cast<int>(reinterpret_cast<std::uintptr_t>(view.data) % 64), 0, comm, "the alignment");
  for (std::size_t i = 0; i < view.count; ++i) expect(view.as<float>()[i] == 0, true, comm, "zeroed");
  comm.all_reduce(view, ReduceOp::sum);
}

// One dtype is enough for parts that are themselves larger than what a backend moves at a time: it moves bytes.
std::size_t part_of(std::size_t count, DType dtype) {
  return count == kLarge && dtype != DType::f32 ? kLargePart : count;
}

}  // namespace

std::vector<CommunicatorCase> communicator_cases() {
  std::vector<CommunicatorCase> cases;
  const auto add = [&cases](const std::string& name, DType dtype, std::size_t count, auto&& run) {
    cases.push_back({fmt::format("{} of {} {}", name, count, describe(dtype)), run});
  };
  for (const std::size_t count : kSizes) {
    for (const DType dtype : kReducible)
      for (const ReduceOp op : kOps) {
        if (count == kLarge && op != ReduceOp::sum) continue;  // the time is better spent on other sizes
        add("all_reduce", dtype, count, [=](Communicator& comm) { all_reduce_case(comm, dtype, count, op); });
        add("reduce", dtype, count, [=](Communicator& comm) { reduce_case(comm, dtype, count, op); });
        add("reduce_scatter", dtype, part_of(count, dtype),
            [=](Communicator& comm) { reduce_scatter_case(comm, dtype, part_of(count, dtype), op); });
      }
    for (const DType dtype : kReducible)
      add("reduce_scatter in place", dtype, part_of(count, dtype),
          [=](Communicator& comm) { reduce_scatter_in_place_case(comm, dtype, part_of(count, dtype)); });
    for (const DType dtype : kAll) {
      add("broadcast", dtype, count, [=](Communicator& comm) { broadcast_case(comm, dtype, count); });
      add("all_gather", dtype, part_of(count, dtype),
          [=](Communicator& comm) { all_gather_case(comm, dtype, part_of(count, dtype)); });
      add("all_gather in place", dtype, part_of(count, dtype),
          [=](Communicator& comm) { all_gather_in_place_case(comm, dtype, part_of(count, dtype)); });
    }
    add("same bits", DType::f32, count, [=](Communicator& comm) { same_bits_case(comm, count); });
  }
  cases.push_back({"barriers", barriers_case});
  return cases;
}

void run_cases(comm::Communicator& communicator, const std::vector<CommunicatorCase>& cases) {
  for (const CommunicatorCase& one : cases) {
    try {
      one.body(communicator);
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}: {}", one.name, error.what()));
    }
  }
}

void run_all_cases(comm::Communicator& communicator) {
  std::vector<CommunicatorCase> cases = communicator_cases();
  cases.push_back({"memory", memory_case});
  run_cases(communicator, cases);
}

// Sums that depend on their order.
void fill_thirds(const Communicator& comm, BufferView buffer) {
  for (std::size_t i = 0; i < buffer.count; ++i)
    buffer.as<float>()[i] = 1.0F / static_cast<float>(3 + i + 7 * static_cast<std::size_t>(comm.rank()));
}

void check_reduced_bits_in(Communicator& comm, BufferView summed, BufferView reduced) {
  fill_thirds(comm, summed);
  comm.all_reduce(summed, ReduceOp::sum);
  for (int root = 0; root < comm.size(); ++root) {
    fill_thirds(comm, reduced);
    comm.reduce(reduced, ReduceOp::sum, root);
    if (comm.rank() == root)
      expect(std::memcmp(reduced.data, summed.data, summed.bytes()), 0, comm,
             "the difference of bits to root", static_cast<std::size_t>(root));
  }
}

void check_reduced_bits(Communicator& comm) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1009}, kLarge}) {
    std::vector<float> summed(count), reduced(count);
    check_reduced_bits_in(comm, {summed.data(), count, DType::f32}, {reduced.data(), count, DType::f32});
    const auto memory = comm.allocate(2 * count * sizeof(float));
    auto* const data = static_cast<float*>(memory->data());
    check_reduced_bits_in(comm, {data, count, DType::f32}, {data + count, count, DType::f32});
  }
}

TEST_CASE("solo: every collective, dtype and size") { CHECK_NOTHROW(run_all_cases(*comm::make_solo())); }

TEST_CASE("threads: every collective, dtype and size") {
  for (const int size : {1, 2, 3, 4}) {
    CAPTURE(size);
    CHECK_NOTHROW(run_world(size, run_all_cases));
    CHECK_NOTHROW(run_world(size, check_reduced_bits));
  }
}

}  // namespace fleetrun::testing
