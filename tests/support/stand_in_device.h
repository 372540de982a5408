// A device that computes nothing and remembers everything. Its memory cannot be touched from the host; its kernels say
// what they read and write, and each access is held against those before it on the same bytes: when one of the two
// writes, streams and events must have ordered them (vector clocks, one entry per stream).
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "comm/collective/aligned_memory.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime::test {

class StandInDevice : public Device, private Streams {
 public:
  StandInDevice() {
    for (const auto& entry : all_ops()) kernels_[entry.first] = {.make = make_kernel};
  }

  std::string name() const override { return "stand-in"; }
  std::string version() const override { return "1"; }
  const KernelTable& kernels() const override { return kernels_; }
  std::unique_ptr<comm::Memory> allocate(std::size_t bytes) override {
    return std::make_unique<Unreachable>(bytes);
  }
  void to_plain(const Value& value, const void* data, void* plain) override {
    download(data, plain, value.bytes());
  }
  void from_plain(const Value& value, const void*, void* data) override {
    access("from_plain", data, value.bytes(), kComputeStream, true);
    synchronise();
  }
  void enter_thread(int) override {}
  Streams* streams() override { return this; }
  std::unique_ptr<comm::Communicator> make_communicator(const comm::Party& party, int) override {
    return std::make_unique<StandInCommunicator>(*this, party.size);
  }

  // Accesses that nothing ordered, in words.
  std::vector<std::string> disorder() const {
    const std::lock_guard lock(mutex_);
    return disorder_;
  }
  static constexpr std::int64_t kStreamApart = 1'000'000'000'000;  // nanoseconds
  std::size_t kernels_run() const { return kernels_run_; }
  int holds() const { return holds_; }  // so far
  // As if the hold_backs of these numbers (from now, counting from 0) had been forgotten.
  void forget_holds(const std::set<int>& numbers) {
    forgotten_.clear();
    for (const int number : numbers) forgotten_.insert(holds_ + number);
  }
  void forget_disorder() { disorder_.clear(); }

 private:
  static constexpr std::size_t kStreams = 3;
  using Clock = std::array<long, kStreams>;  // how far each stream has been seen

  class Unreachable : public comm::Memory {
   public:
    explicit Unreachable(std::size_t bytes)
        : bytes_(std::max<std::size_t>(bytes, 1)),
          data_(::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
      if (data_ == MAP_FAILED) throw std::runtime_error("no addresses left");
    }
    ~Unreachable() override { ::munmap(data_, bytes_); }
    void* data() override { return data_; }

   private:
    std::size_t bytes_;
    void* data_;
  };

  class StandInEvent : public Event {
   public:
    explicit StandInEvent(StandInDevice& device) : device_(device) {}
    void record(int stream) override {
      const std::lock_guard lock(device_.mutex_);
      seen_ = device_.clock(stream);
    }
    void hold_back(int stream) override {
      const std::lock_guard lock(device_.mutex_);
      if (device_.forgotten_.count(device_.holds_++) == 0) join(device_.clock(stream), seen_);
    }
    void wait() override {
      const std::lock_guard lock(device_.mutex_);
      for (Clock& clock : device_.clocks_) join(clock, seen_);
    }

   private:
    StandInDevice& device_;
    Clock seen_{};
  };

  // Each stamp comes a millisecond after the one before it in its stream, and a stream is kStreamApart behind the one with the next lower
  // number.
  class StandInStamp : public Stamp {
   public:
    explicit StandInStamp(StandInDevice& device) : device_(device) {}
    void record(int stream) override {
      const std::lock_guard lock(device_.mutex_);
      ns_ = ++device_.stamps_.at(static_cast<std::size_t>(stream)) * 1'000'000 + stream * kStreamApart;
    }
    std::int64_t ns_after(const Stamp& earlier) const override {
      return ns_ - dynamic_cast<const StandInStamp&>(earlier).ns_;
    }

   private:
    StandInDevice& device_;
    std::int64_t ns_ = 0;
  };

  // Sums nothing; what it would be given lies on the device.
  class StandInCommunicator : public comm::Communicator {
   public:
    StandInCommunicator(Device& device, int size) : device_(device), size_(size) {}
    int rank() const override { return 0; }
    int size() const override { return size_; }
    void all_reduce(BufferView, comm::ReduceOp) override {}
    void reduce(BufferView, comm::ReduceOp, int) override {}
    void broadcast(BufferView, int) override {}
    void reduce_scatter(BufferView, BufferView, comm::ReduceOp) override {}
    void all_gather(BufferView, BufferView) override {}
    void barrier() override {}
    std::unique_ptr<comm::Memory> allocate(std::size_t bytes) override { return device_.allocate(bytes); }
    std::uint64_t collectives() const override { return 0; }
    void record_in(FlightRecords&, const std::string&) override {}

   private:
    Device& device_;
    int size_;
  };

  struct Piece {
    ValueId id;
    std::size_t bytes;
    bool written;
  };

  class StandInKernel : public Kernel {
   public:
    StandInKernel(const OpView& op, StandInDevice& device)
        : device_(device), type_(op.op().type), collective_(op.op().role == Role::communication) {
      for (const ValueId id : op.op().inputs)
        if (id != kNone) pieces_.push_back({id, op.program().value(id).bytes(), false});
      for (const ValueId id : op.op().outputs)
        if (id != kNone) pieces_.push_back({id, op.program().value(id).bytes(), true});
    }
    std::size_t scratch_bytes() const override { return collective_ ? 0 : kScratchBytes; }
    void run(const RunContext& context) override {
      for (const Piece& piece : pieces_)
        device_.access(type_, context.data[piece.id], piece.bytes, context.stream, piece.written);
      device_.access(type_, context.scratch, scratch_bytes(), context.stream, true);
      const std::lock_guard lock(device_.mutex_);
      ++device_.kernels_run_;
    }

   private:
    static constexpr std::size_t kScratchBytes = 256;
    StandInDevice& device_;
    std::string type_;
    bool collective_;
    std::vector<Piece> pieces_;
  };

  struct Access {
    std::string_view who;
    const std::byte* begin;
    const std::byte* end;
    int stream;
    long time;
    bool write;
  };

  static std::unique_ptr<Kernel> make_kernel(const OpView& op, Device& device) {
    return std::make_unique<StandInKernel>(op, dynamic_cast<StandInDevice&>(device));
  }
  static void join(Clock& clock, const Clock& other) {
    for (std::size_t i = 0; i < kStreams; ++i) clock[i] = std::max(clock[i], other[i]);
  }
  Clock& clock(int stream) { return clocks_.at(static_cast<std::size_t>(stream)); }

  std::unique_ptr<Event> make_event() override { return std::make_unique<StandInEvent>(*this); }
  std::unique_ptr<Stamp> make_stamp() override { return std::make_unique<StandInStamp>(*this); }
  std::unique_ptr<comm::Memory> allocate_staging(std::size_t bytes) override {
    return comm::make_aligned_memory(bytes);
  }
  void upload(const void*, void* data, std::size_t bytes, int stream) override {
    access("upload", data, bytes, stream, true);
  }
  void download(const void* data, void* host, std::size_t bytes) override {
    access("download", data, bytes, kComputeStream, false);
    synchronise();
    std::memset(host, 0, bytes);
  }
  void download_all(std::span<const Download> downloads) override {
    for (const Download& each : downloads) download(each.data, each.staging, each.bytes);
  }
  void synchronise() override {
    const std::lock_guard lock(mutex_);
    Clock all{};
    for (const Clock& clock : clocks_) join(all, clock);
    clocks_.fill(all);
    accesses_.clear();  // whatever comes is ordered after all of them
  }

  // `who` is kept for as long as the device.
  void access(std::string_view who, const void* data, std::size_t bytes, int stream, bool write) {
    const std::lock_guard lock(mutex_);
    const auto* const begin = static_cast<const std::byte*>(data);
    Clock& now = clock(stream);
    const Access mine = {who, begin, begin + bytes, stream, ++now[static_cast<std::size_t>(stream)], write};
    for (std::size_t i = 0; i < accesses_.size();) {
      const Access& other = accesses_[i];
      if (other.end <= mine.begin || mine.end <= other.begin) {
        ++i;
        continue;
      }
      const bool ordered = other.time <= now[static_cast<std::size_t>(other.stream)];
      if (!ordered && (write || other.write)) note(other, mine);
      const bool covered = mine.begin <= other.begin && other.end <= mine.end;
      if (ordered && covered && (write || (!other.write && other.stream == stream))) {
        accesses_[i] = accesses_.back();
        accesses_.pop_back();
      } else {
        ++i;
      }
    }
    accesses_.push_back(mine);
  }

  void note(const Access& other, const Access& mine) {
    disorder_.push_back(fmt::format("{} {} on stream {} what {} {} on stream {}", mine.who,
                                    mine.write ? "writes" : "reads", mine.stream, other.who,
                                    other.write ? "writes" : "reads", other.stream));
  }

  KernelTable kernels_;
  mutable std::mutex mutex_;
  std::array<Clock, kStreams> clocks_{};
  std::vector<Access> accesses_;  // those before which a later one may have to wait
  std::vector<std::string> disorder_;
  std::size_t kernels_run_ = 0;
  int holds_ = 0;
  std::array<std::int64_t, kStreams> stamps_{};  // by stream
  std::set<int> forgotten_;
};

}  // namespace fleetrun::runtime::test
