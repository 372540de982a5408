#include "comm/gloo/gloo.h"

#include <csignal>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gloo/context.h>

#include "base/error/error.h"
#include "comm/collective/collective_communicator.h"
#include "comm/gloo/gloo_collectives.h"
#include "comm/gloo/gloo_mesh.h"
#include "comm/gloo/lost_peer.h"

namespace fleetrun::comm {
namespace {

// After a failure: how long the others may take to say how far they came. They notice within milliseconds,
// because the first to fail closes its connections.
constexpr auto kRollCallDeadline = std::chrono::seconds(1);

// How often a caller that waits looks at the connections: well under the time after which a silent peer is lost.
constexpr auto kLookAtConnectionsEvery = std::chrono::milliseconds(200);

// Gloo writes to sockets in a way that raises SIGPIPE when a peer is gone, which would end the process
// without a word. Blocked here, it is an error code instead; Gloo's own thread is started from ours and
// inherits this.
void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// More than ten members: one mutex guards what the caller and the thread hand each other for a collective.
class GlooCommunicator : public CollectiveCommunicator {
 public:
  explicit GlooCommunicator(const GlooOptions& options)
      : CollectiveCommunicator(options.party.rank, options.party.size),
        options_(options),
        thread_([this] { live(); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return joined_ || failure_; });
    if (!failure_) return;
    lock.unlock();
    thread_.join();
    std::rethrow_exception(failure_);
  }

  ~GlooCommunicator() override {
    {
      const std::unique_lock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  enum class Slot { empty, requested, done };

  // The caller's side: no memory is allocated here.
  void run(const Collective& collective, std::uint64_t number) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return slot_ == Slot::empty; });
    collective_ = collective;
    number_ = number;
    slot_ = Slot::requested;
    changed_.notify_all();
    lock.unlock();
    tell_of_sleep();
    lock.lock();
    // As bounded as the waits of the progress thread are: the buffers are in use until it lets go of them.
    while (!changed_.wait_for(lock, kLookAtConnectionsEvery, [this] { return slot_ == Slot::done; })) {
      lock.unlock();
      watch_->look();
      lock.lock();
    }
    slot_ = Slot::empty;
    changed_.notify_all();
    if (failure_) std::rethrow_exception(failure_);
  }

  // The progress thread, from its first to its last line.
  void live() {
    block_sigpipe();
    if (!connect()) return;
    serve();
    close();
  }

  void close() {
    watch_->end();
    context_.reset();
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || slot_ == Slot::requested; });
      if (slot_ != Slot::requested) return;
      lock.unlock();
      if (!failure_) serve_request();
      lock.lock();
      slot_ = Slot::done;
      changed_.notify_all();
    }
  }

  bool connect() {
    Mesh mesh;
    std::exception_ptr failure;
    try {
      mesh = connect_mesh({options_.party, options_.key, options_.address, options_.name},
                          Deadline(options_.join_deadline));
    } catch (...) {  // carried to the caller, who waits for it
      failure = std::current_exception();
    }
    context_ = std::move(mesh.context);
    const std::lock_guard lock(mutex_);
    watch_ = std::move(mesh.watch);
    joined_ = !failure;
    failure_ = failure;
    changed_.notify_all();
    return !failure;
  }

  void serve_request() {
    try {
      run_on_gloo(context_, collective_, {number_, options_.collective_deadline}, scratch_);
    } catch (const std::exception& error) {
      watch_->look();  // before our connections are closed
      close();         // so that those who wait for us notice
      failure_ = std::make_exception_ptr(describe_failure(error.what()));
    }
  }

  Error describe_failure(const std::string& gloo_says) const {
    const std::string what = describe(collective_, options_.party.name_of(collective_.root));
    const Failing ours = {.where = fmt::format("collective {}, {}", number_, what),
                          .lost = watch_->first_lost()};
    const auto answers = collect_states(options_.party, fmt::format("gloo {} failed", options_.name),
                                        pack(ours), Deadline(kRollCallDeadline));
    return Error(ErrorKind::temporary, fmt::format("rank {}: {}: {} ({})", options_.party.name(), ours.where,
                                                   find_cause(answers, ours, options_.party), gloo_says));
  }

  const GlooOptions options_;
  std::shared_ptr<GlooWatch> watch_;  // since this rank joined; goes after the context
  // Of the progress thread alone.
  std::shared_ptr<gloo::Context> context_;  // shared because Gloo's options ask for it so
  std::vector<std::byte> scratch_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Slot slot_ = Slot::empty;
  Collective collective_;
  std::uint64_t number_ = 0;
  std::exception_ptr failure_;
  bool joined_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last: everything it uses is there when it starts
};

}  // namespace

std::unique_ptr<Communicator> make_gloo(const GlooOptions& options) {
  return std::make_unique<GlooCommunicator>(options);
}

}  // namespace fleetrun::comm
