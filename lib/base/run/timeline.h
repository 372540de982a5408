// What the threads of one process did when, while somebody wants to know: spans of CLOCK_MONOTONIC. Whoever is watched
// holds a pointer to one, null when nobody watches. Noting a span allocates nothing.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun {

// The last three: when a device that works beside the host was at work on the ops that the host gave to it, and on their kernels.
enum class Lane : std::uint8_t {
  compute,
  communication,
  data,
  loader,
  checkpoint,
  device,
  device_communication,
  device_kernels
};
constexpr std::size_t kLanes = 8;
std::string_view describe(Lane lane);

// What many spans have in common.
struct SpanLabel {
  Lane lane = Lane::compute;
  std::string name;      // "conv2d_backward"
  std::string category;  // "backward"
  std::string value;     // what it is about: the output of an op; may be empty
};

struct Span {
  std::uint32_t label = 0;
  std::uint32_t step = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

std::int64_t monotonic_ns();  // the clock of all spans

class Timeline {
 public:
  using Label = std::uint32_t;

  Label add(SpanLabel label);

  // From now on spans are kept, up to so many; those of an earlier opening are forgotten.
  void open(std::size_t most_spans);
  void close();
  bool is_open() const { return open_.load(std::memory_order_relaxed); }

  void begin_step(std::int64_t step) { step_.store(static_cast<std::uint32_t>(step)); }
  void note(Label label, std::int64_t start_ns, std::int64_t end_ns);  // that has ended; from any thread

  // While it is closed.
  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<SpanLabel>& labels() const { return labels_; }
  std::size_t left_out() const { return left_out_; }  // for which there was no room

 private:
  std::mutex mutex_;
  std::atomic<bool> open_{false};
  std::atomic<std::uint32_t> step_{0};
  std::vector<SpanLabel> labels_;
  std::vector<Span> spans_;
  std::size_t most_ = 0;
  std::size_t left_out_ = 0;
};

// A span from here to the end of the block, if there is a timeline and it is open at its end.
class SpanHere {
 public:
  SpanHere(Timeline* timeline, Timeline::Label label)
      : timeline_(timeline), label_(label), start_ns_(timeline != nullptr ? monotonic_ns() : 0) {}
  ~SpanHere() {
    if (timeline_ != nullptr) timeline_->note(label_, start_ns_, monotonic_ns());
  }
  SpanHere(const SpanHere&) = delete;
  SpanHere& operator=(const SpanHere&) = delete;

 private:
  Timeline* timeline_;
  Timeline::Label label_;
  std::int64_t start_ns_;
};

}  // namespace fleetrun
