// A communicator that writes down its collectives before it passes them on.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "comm/collective/collective.h"
#include "comm/collective/collective_communicator.h"

namespace fleetrun::testing {

// What was called on a rank's communicators, in the order of the calls: "group: reduce of 8 f32 (sum) to rank 0".
class CallLog {
 public:
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

class CountingCommunicator : public comm::CollectiveCommunicator {
 public:
  CountingCommunicator(std::string name, std::unique_ptr<comm::Communicator> inner, CallLog& log)
      : CollectiveCommunicator(inner->rank(), inner->size()),
        name_(std::move(name)),
        inner_(std::move(inner)),
        log_(log) {}

  std::unique_ptr<comm::Memory> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }

 private:
  void run(const comm::Collective& collective, std::uint64_t) override {
    using Kind = comm::Collective::Kind;
    log_.add(fmt::format("{}: {}", name_, describe(collective)));
    switch (collective.kind) {
      case Kind::all_reduce:
        return inner_->all_reduce(collective.buffer, collective.op);
      case Kind::reduce:
        return inner_->reduce(collective.buffer, collective.op, collective.root);
      case Kind::broadcast:
        return inner_->broadcast(collective.buffer, collective.root);
      case Kind::reduce_scatter:
        return inner_->reduce_scatter(collective.buffer, collective.mine, collective.op);
      case Kind::all_gather:
        return inner_->all_gather(collective.mine, collective.buffer);
      case Kind::barrier:
        return inner_->barrier();
    }
  }

  const std::string name_;
  const std::unique_ptr<comm::Communicator> inner_;
  CallLog& log_;
};

}  // namespace fleetrun::testing
