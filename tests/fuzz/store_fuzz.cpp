// Tries the store protocol with bytes that nobody should say, for some time:
//   store_fuzz [--seconds N] [--seed N]
// A third of the time for messages, a third for conversations with the store's rules, a third for a real store over
// TCP, between whose strangers ranks must be served. Ends with 1 or by SIGABRT at the first thing that is not right.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/run/store_protocol.h"
#include "comm/rendezvous/store_client.h"
#include "fuzz/mutate.h"
#include "fuzz/store_target.h"
#include "support/store_thread.h"
#include "support/stranger.h"

namespace fleetrun::fuzz {
namespace {

using namespace store_protocol;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kStrangersPerRank = 200;
constexpr double kMostGrowth =
    64;  // MiB of this process while strangers talk: 64 of them with 4 KiB each are less

struct Options {
  double seconds = 600;
  std::uint64_t seed = 1;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--seconds")
      options.seconds = std::atof(argv[i + 1]);
    else if (flag == "--seed")
      options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    else
      throw std::runtime_error("usage: store_fuzz [--seconds N] [--seed N]");
  }
  return options;
}

Hello hello_of(std::uint32_t rank) {
  return {.version = kVersion, .identity = {"run", 0, rank, 2}, .nonce = make_nonce()};
}

std::vector<std::string> frames() {
  return {encode(hello_of(0)),       encode(Challenge{}),    encode(Proof{}),
          encode(Welcome{}),         encode(Refused{"x"}),   encode(Set{1, "key", "value"}),
          encode(Get{2, "key"}),     encode(Look{3, "key"}), encode(Done{4}),
          encode(Value{5, "value"}), encode(Absent{6})};
}

std::vector<std::string> messages() {
  std::vector<std::string> all = frames();
  for (std::string& frame : all) frame.erase(0, kLengthBytes);
  return all;
}

// Orders of try_conversation: ranks 0 and 1 join, set, get and look.
std::vector<std::string> conversations() {
  const std::string first = std::string("\x00\x01\x03\x00\x04", 5),
                    second = std::string("\x08\x02\x0b\x08\x0c", 5);
  const std::string set = std::string("\x05\x01\x03key\x05value", 13),
                    get = std::string("\x0e\x02\x03key", 6);
  return {first, second, first + second + set + get, second + get + first + set,
          first + std::string("\x07\x03\x03key\x01", 7) + first};
}

std::uint64_t for_a_while(double seconds, const std::function<void()>& work) {
  std::uint64_t count = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (; Clock::now() < end; ++count) work();
  return count;
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096 / (1 << 20);
}

// One stranger: bytes in one piece or two, and it leaves at once, or listens first.
void be_a_stranger(const Endpoint& store, Mutator& mutator) {
  testing::Stranger stranger(store);
  const std::string bytes = mutator.next();
  const std::size_t cut = mutator.below(bytes.size() + 1);
  stranger.say(std::string_view(bytes).substr(0, cut));
  if (mutator.below(4) == 0) stranger.hears_within(1);
  stranger.say(std::string_view(bytes).substr(cut));
}

void be_a_rank(const Endpoint& store, const RunKey& key, std::uint64_t number) {
  comm::StoreClient client(store, key, {"run", 0, 0, 2}, comm::Deadline(std::chrono::seconds(20)));
  const std::string value = std::to_string(number);
  client.set("key", value);
  if (client.look("key") != value) throw std::runtime_error("the store gave back something else");
}

std::uint64_t try_server(const Options& options, double seconds) {
  const RunKey key = make_run_key();
  testing::StoreThread store({.key = key, .run_id = "run", .world_size = 2});
  Mutator mutator(options.seed, frames());
  std::uint64_t count = 0;
  double before = 0;
  const std::uint64_t done = for_a_while(seconds, [&] {
    be_a_stranger(store.endpoint(), mutator);
    if (++count % kStrangersPerRank != 0) return;
    be_a_rank(store.endpoint(), key, count);
    if (before == 0) before = resident_mib();  // the first ones warm up
  });
  be_a_rank(store.endpoint(), key, count);
  const double growth = before == 0 ? 0 : resident_mib() - before;
  if (growth > kMostGrowth) throw std::runtime_error(fmt::format("the memory grew by {:.0f} MiB", growth));
  fmt::print("{} strangers at a store over TCP, {} of them counted as dropped; memory grew by {:.1f} MiB\n",
             done, store.dropped(), growth);
  return done;
}

void run(const Options& options) {
  const double share = options.seconds / 3;
  Mutator of_messages(options.seed, messages());
  fmt::print("{} messages\n", for_a_while(share, [&] { try_message(of_messages.next()); }));
  Mutator of_conversations(options.seed, conversations());
  fmt::print("{} conversations\n", for_a_while(share, [&] { try_conversation(of_conversations.next()); }));
  try_server(options, share);
}

}  // namespace
}  // namespace fleetrun::fuzz

int main(int argc, char** argv) {
  try {
    fleetrun::fuzz::run(fleetrun::fuzz::parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "store_fuzz: {}\n", error.what());
    return 1;
  }
}
