#include "cuda/logic/device_communicator.h"

#include <thread>
#include <utility>

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
  if (pending_ && !aborted_ && library_->work() != State::done) library_->abort();
}

void DeviceCommunicator::begin_recording() { recording_ = true; }

std::vector<comm::Collective> DeviceCommunicator::end_recording() {
  recording_ = false;
  return std::exchange(recorded_, {});
}

bool DeviceCommunicator::is_recorded(const comm::Collective& collective) {
  if (!recording_) return false;
  if (collective.kind == comm::Collective::Kind::barrier)
    throw Error(ErrorKind::internal, "a barrier cannot be recorded, because the host waits for it");
  if (library_->is_for_host(collective))
    throw Error(ErrorKind::internal,
                fmt::format("{} on the host's memory cannot be recorded", comm::describe(collective)));
  check_usable(collective);
  note(collective, collectives() + recorded_.size() + 1);
  library_->begin(collective);
  wait_for(&CollectiveLibrary::calls);
  recorded_.push_back(collective);
  return true;
}

void DeviceCommunicator::repeat(const std::vector<comm::Collective>& recorded) {
  check_usable(recorded.front());
  library_->follow_compute();
  repeating_ = true;  // nothing throws meanwhile
  for (const comm::Collective& collective : recorded) begin(collective);
  repeating_ = false;
  repeated_ = recorded.size();
}

void DeviceCommunicator::note(const comm::Collective& collective, std::uint64_t number) {
  collective_ = collective;
  number_ = number;
  repeated_ = 1;
  deadline_ = comm::Deadline(options_.collective_deadline);
}

void DeviceCommunicator::check_usable(const comm::Collective& collective) const {
  if (aborted_)
    throw Error(ErrorKind::temporary,
                fmt::format("rank {}: {} cannot begin: the communicator was given up in collective {}",
                            options_.party.name(), comm::describe(collective), number_));
}

void DeviceCommunicator::run(const comm::Collective& collective, std::uint64_t number) {
  check_usable(collective);
  const bool for_host = !repeating_ && library_->is_for_host(collective);
  // A copy from the host would wait for this, too, but without looking for errors.
  if (for_host && pending_) wait_for(&CollectiveLibrary::work);
  note(collective, number);
  pending_ = true;
  if (repeating_) return;
  library_->begin(collective);
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
  if (!pending_ || aborted_ || recording_) return;
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
  const std::string what = doing();
  const auto states =
      comm::collect_states(options_.party, fmt::format("device communicator {} failed", options_.name), what,
                           comm::Deadline(kRollCallDeadline));
  throw Error(ErrorKind::temporary, fmt::format("rank {}: {}: {} ({})", options_.party.name(), what,
                                                comm::blame(states, options_.party), problem));
}

std::string DeviceCommunicator::doing() const {
  if (number_ == 0) return "joining";
  if (repeated_ == 1) return fmt::format("collective {}, {}", number_, comm::describe(collective_));
  return fmt::format("collectives {} to {} of a repeated step, the last one {}", number_ - repeated_ + 1,
                     number_, comm::describe(collective_));
}

}  // namespace fleetrun::cuda
