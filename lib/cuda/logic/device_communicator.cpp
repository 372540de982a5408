#include "cuda/logic/device_communicator.h"

#include <thread>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::cuda {
namespace {

using State = CollectiveLibrary::State;

// After a failure: how long the others may take to say how far they came.
constexpr auto kRollCallDeadline = std::chrono::seconds(1);

// A wait looks again at once this often, about a millisecond, and then pauses between two looks.
constexpr int kLooksWithoutPause = 1000;
constexpr auto kPause = std::chrono::microseconds(50);

}  // namespace

DeviceCommunicator::DeviceCommunicator(std::unique_ptr<CollectiveLibrary> library,
                                       const DeviceCommunicatorOptions& options)
    : CollectiveCommunicator(options.party.rank, options.party.size),
      library_(std::move(library)),
      options_(options),
      deadline_(options.join_deadline) {
  const std::string key = fmt::format("device communicator {}", options.name);
  if (rank() == 0) options.party.store.set(key, library_->make_id());
  library_->begin_join(options.party.store.get(key, deadline_), rank(), size());
  wait_for(&CollectiveLibrary::calls);
}

DeviceCommunicator::~DeviceCommunicator() {
  if (pending_ && !aborted_) library_->abort();
}

void DeviceCommunicator::run(const comm::Collective& collective, std::uint64_t number) {
  if (aborted_)
    throw Error(ErrorKind::temporary,
                fmt::format("rank {}: {} cannot begin: the communicator was given up in collective {}",
                            options_.party.name(), comm::describe(collective), number_));
  collective_ = collective;
  number_ = number;
  deadline_ = comm::Deadline(options_.collective_deadline);
  pending_ = true;
  const bool for_host = library_->begin(collective);
  wait_for(&CollectiveLibrary::calls);
  if (!options_.wait && !for_host && collective.kind != comm::Collective::Kind::barrier) return;
  tell_of_sleep();
  wait_for(&CollectiveLibrary::work);
  library_->finish();
  pending_ = false;
}

void DeviceCommunicator::wait_for(State (CollectiveLibrary::*state)()) {
  for (int looks = 0;; ++looks) {
    const State now = (*library_.*state)();
    if (library_->calls() == State::failed || now == State::failed) fail(library_->problem());
    if (now == State::done) return;
    if (deadline_.passed()) fail(fmt::format("not done after {:g} s", deadline_.total_seconds()));
    if (looks < kLooksWithoutPause)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
  }
}

void DeviceCommunicator::poll() {
  if (!pending_ || aborted_) return;
  if (library_->calls() == State::failed) fail(library_->problem());
  const State work = library_->work();
  if (work == State::failed) fail(library_->problem());
  if (work == State::done) pending_ = false;
  if (work == State::busy && deadline_.passed())
    fail(fmt::format("not done after {:g} s", deadline_.total_seconds()));
}

void DeviceCommunicator::fail(const std::string& problem) {
  aborted_ = true;
  library_->abort();
  const std::string what =
      number_ == 0 ? "joining" : fmt::format("collective {}, {}", number_, comm::describe(collective_));
  const auto states =
      comm::collect_states(options_.party, fmt::format("device communicator {} failed", options_.name), what,
                           comm::Deadline(kRollCallDeadline));
  throw Error(ErrorKind::temporary, fmt::format("rank {}: {}: {} ({})", options_.party.name(), what,
                                                comm::blame(states, options_.party), problem));
}

}  // namespace fleetrun::cuda
