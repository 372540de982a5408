#include "comm/gloo/gloo.h"

#include <csignal>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gloo/context.h>

#include "base/error/error.h"
#include "comm/collective/collective_communicator.h"
#include "comm/gloo/gloo_collectives.h"
#include "comm/gloo/gloo_links.h"
#include "comm/gloo/gloo_mesh.h"
#include "comm/gloo/lost_peer.h"

namespace fleetrun::comm {
namespace {

// After a failure: how long the others may take to say how far they came. They notice within milliseconds,
// because the first to fail closes its connections.
constexpr auto kRollCallDeadline = std::chrono::seconds(1);

// How often a caller that waits looks at the connections: well under the time after which a silent peer is lost.
constexpr auto kLookAtConnectionsEvery = std::chrono::milliseconds(200);

// How long a message may still come over a connection after another one to the same peer was lost: the peer may have gone after its
// work was done.
constexpr auto kComesAfterAll = std::chrono::milliseconds(500);

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
  int name_of(int of_rank) const override { return options_.party.name_of(of_rank); }

  void run(const Collective& collective, std::uint64_t number) override {
    if (!links_ || !run_by_links(collective)) run_by_gloo(collective, number);
  }

  // False when it goes by Gloo, or has failed: the progress thread does with a link_problem_ as with a failure of Gloo.
  bool run_by_links(const Collective& collective) {
    try {
      switch (collective.kind) {
        case Collective::Kind::all_reduce:
          look_before_meeting();
          links_->all_reduce(collective.buffer, collective.op);
          return true;
        case Collective::Kind::barrier:
          look_before_meeting();
          links_->barrier();
          return true;
        case Collective::Kind::reduce:
          links_->reduce(collective.buffer, collective.op, collective.root);
          return true;
        default:
          return false;
      }
    } catch (const std::exception& problem) {
      link_problem_ = problem.what();
      return false;
    }
  }

  // Where no rank is done before all have begun, nobody may be gone now.
  void look_before_meeting() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_look_ < kLookAtConnectionsEvery) return;
    last_look_ = now;
    watch_->look();
    if (watch_->first_lost()) throw std::runtime_error("a connection is lost");
  }

  void look_while_waiting(LinkPeers peers, std::chrono::milliseconds waited) {
    watch_->look();
    const std::optional<LostPeer> lost = watch_->first_lost();
    if (!lost) return;
    const bool needed = lost->rank == peers.from || lost->rank == peers.to;
    if (lost->state == PeerState::silent || (needed && waited >= kComesAfterAll))
      throw std::runtime_error("a connection is lost");
  }

  void run_by_gloo(const Collective& collective, std::uint64_t number) {
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
    links_.reset();
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
      const Deadline deadline(options_.join_deadline);
      mesh = connect_mesh(mesh_options(options_.name), deadline);
      if (size() > 1) links_ = connect_links(*mesh.watch, deadline);
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

  MeshOptions mesh_options(const std::string& name) const {
    return {options_.party, options_.key, options_.address, name};
  }

  // Gloo connects, and leaves the connections to us. Nobody writes before all have let go of them.
  std::unique_ptr<GlooLinks> connect_links(GlooWatch& watch, Deadline deadline) {
    const std::string name = options_.name + " links";
    std::vector<UniqueFd> connections;
    {
      const Mesh mesh = connect_mesh(mesh_options(name), deadline);
      connections = watch.take(*mesh.watch, size());
    }
    exchange(options_.party, fmt::format("gloo {} let go", name), "", deadline);
    const LinkWaits waits = {options_.collective_deadline, [this] { tell_of_sleep(); },
                             [this](LinkPeers peers, auto waited) { look_while_waiting(peers, waited); }};
    return std::make_unique<GlooLinks>(std::move(connections), rank(), waits);
  }

  void serve_request() {
    try {
      if (!link_problem_.empty()) throw std::runtime_error(link_problem_);
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
  // Of the progress thread until this rank has joined, and from a failure on; of the caller in between.
  std::unique_ptr<GlooLinks> links_;
  std::string link_problem_;
  std::chrono::steady_clock::time_point last_look_;

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
