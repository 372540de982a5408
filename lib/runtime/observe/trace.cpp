#include "runtime/observe/trace.h"

#include <algorithm>
#include <array>
#include <limits>
#include <ostream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/json/json_value.h"
#include "base/system/file.h"
#include "base/system/marked_file.h"
#include "base/text/plural.h"
#include "base/text/printable.h"
#include "runtime/observe/gather_texts.h"

namespace fleetrun::runtime {
namespace {

// What the file begins with, by which we recognise it as ours.
const std::string kStart =
    "{\"otherData\":{\"written_by\":\"fleetrun\"},\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";

std::string path_of(const job::OutputSpec& output) { return output.dir + "/trace.json"; }

constexpr std::size_t kMostSpans = 1 << 18;   // of a rank: 6 MiB, and 40 MB in the file
constexpr std::size_t kOtherSpans = 4096;     // of batches that are made ahead, checkpoints, evaluations
constexpr std::uint32_t kRowsOfALane = 1000;  // numbers of rows are apart by that
constexpr int kClockRounds = 9;               // of which the middle one counts

std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string name_row(int rank, std::size_t row, const std::string& name) {
  return fmt::format(
      R"({{"name":"thread_name","ph":"M","pid":{0},"tid":{1},"args":{{"name":{2}}}}},)"
      "\n"
      R"({{"name":"thread_sort_index","ph":"M","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})",
      rank, row, json_quoted(name));
}

// Which rows of a lane are taken until when.
class Rows {
 public:
  // The first one that is free from `start_ns` on; taken until `end_ns`.
  std::size_t take(std::int64_t start_ns, std::int64_t end_ns) {
    const auto free = std::find_if(ends_.begin(), ends_.end(), [&](auto end) { return end <= start_ns; });
    if (free != ends_.end()) {
      *free = end_ns;
      return static_cast<std::size_t>(free - ends_.begin());
    }
    ends_.push_back(end_ns);
    return ends_.size() - 1;
  }
  std::size_t count() const { return ends_.size(); }

 private:
  std::vector<std::int64_t> ends_;
};

std::vector<Span> in_order(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  return spans;
}

std::string event_of(const Span& span, const SpanLabel& label, int rank, std::size_t row,
                     const TraceClock& clock) {
  std::string text =
      fmt::format(R"({{"name":{},"cat":{},"ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{"step":{})",
                  json_quoted(label.name), json_quoted(label.category),
                  microseconds(span.start_ns + clock.offset_ns - clock.start_ns),
                  microseconds(span.end_ns - span.start_ns), rank, row, span.step);
  if (!label.value.empty()) text += ",\"value\":" + json_quoted(label.value);
  return text + "}}";
}

// What is to be added to this rank's clock to have rank 0's. Ranks of one node share CLOCK_MONOTONIC. Those of others
// look at their clocks when they leave a barrier, which they do at about the same time.
std::int64_t clock_offset(const RankEnv& env, comm::Communicator& communicator) {
  if (env.nodes == 1) return 0;
  std::vector<std::int64_t> clocks(static_cast<std::size_t>(communicator.size()));
  std::array<std::int64_t, kClockRounds> offsets{};
  for (std::int64_t& offset : offsets) {
    communicator.barrier();
    std::int64_t mine = monotonic_ns();
    communicator.all_gather({&mine, 1, DType::i64}, {clocks.data(), clocks.size(), DType::i64});
    offset = clocks.front() - mine;
  }
  std::nth_element(offsets.begin(), offsets.begin() + kClockRounds / 2, offsets.end());
  return env.node_rank == 0 ? 0 : offsets[kClockRounds / 2];
}

std::int64_t first_start(const std::vector<Span>& spans, std::int64_t offset_ns) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Span& span : spans) first = std::min(first, span.start_ns + offset_ns);
  return first;
}

}  // namespace

std::string trace_events(const Timeline& timeline, int rank, const TraceClock& clock) {
  std::string text =
      fmt::format(R"({{"name":"process_name","ph":"M","pid":{0},"args":{{"name":"rank {0}"}}}},)"
                  "\n"
                  R"({{"name":"process_sort_index","ph":"M","pid":{0},"args":{{"sort_index":{0}}}}})",
                  rank);
  std::array<Rows, kLanes> lanes;
  for (const Span& span : in_order(timeline.spans())) {
    const SpanLabel& label = timeline.labels().at(span.label);
    const auto lane = static_cast<std::size_t>(label.lane);
    const std::size_t row = lane * kRowsOfALane + lanes.at(lane).take(span.start_ns, span.end_ns);
    text += ",\n" + event_of(span, label, rank, row, clock);
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    for (std::size_t row = 0; row < lanes.at(lane).count(); ++row) {
      const std::string_view name = describe(static_cast<Lane>(lane));
      text += ",\n" + name_row(rank, lane * kRowsOfALane + row,
                               row == 0 ? std::string(name) : fmt::format("{} {}", name, row + 1));
    }
  return text;
}

void require_own_trace(const job::OutputSpec& output, const std::string& hint) {
  require_ours(path_of(output), {.text = kStart}, hint);
}

Trace::Trace(const job::OutputSpec& output, const RankEnv& env, comm::Communicator& communicator,
             std::ostream& out)
    : output_(output), env_(env), communicator_(communicator), out_(out) {
  if (output.trace) timeline_ = std::make_unique<Timeline>();
}

void Trace::before_step(std::int64_t step, std::size_t spans) {
  if (!timeline_ || step < output_.trace->front() || step > output_.trace->back()) return;
  if (!timeline_->is_open()) {
    const auto steps = static_cast<std::size_t>(output_.trace->back() - step + 1);
    timeline_->open(std::min(kMostSpans, steps * spans + kOtherSpans));
    first_ = step;
  }
  timeline_->begin_step(step);
  last_ = step;
}

void Trace::after_step(std::int64_t step) {
  if (timeline_ && timeline_->is_open() && step == output_.trace->back()) gather();
}

void Trace::finish(std::int64_t steps) {
  if (timeline_ && timeline_->is_open()) return gather();
  if (!timeline_ || first_ > 0 || communicator_.rank() != 0) return;
  const auto& [first, last] = *output_.trace;
  out_ << fmt::format("warning: no trace of steps {} to {}: ", first, last)
       << (steps < first ? fmt::format("the training ended after step {}", steps)
                         : "they were done before the checkpoint from which the training went on")
       << std::endl;
}

void Trace::gather() {
  timeline_->close();
  TraceClock clock = {.offset_ns = clock_offset(env_, communicator_)};
  clock.start_ns = first_start(timeline_->spans(), clock.offset_ns);
  std::int64_t left_out = static_cast<std::int64_t>(timeline_->left_out());
  communicator_.all_reduce({&clock.start_ns, 1, DType::i64}, comm::ReduceOp::min);
  communicator_.all_reduce({&left_out, 1, DType::i64}, comm::ReduceOp::sum);
  const std::vector<std::string> events =
      gather_texts(trace_events(*timeline_, communicator_.rank(), clock), communicator_);
  if (communicator_.rank() != 0) return;
  if (left_out > 0)
    out_ << fmt::format("warning: {} spans did not fit into the trace", left_out) << std::endl;
  write(fmt::format("{}", fmt::join(events, ",\n")));
}

// A training does not fail because there is no room for what is seen of it.
void Trace::write(const std::string& events) {
  const std::string path = path_of(output_);
  try {
    require_own_trace(output_, "");
    replace_file(path, kStart + events + "\n]}\n");
    out_ << fmt::format("trace: steps {} to {} of {} in {}", first_, last_, plural(env_.world_size, "rank"),
                        printable(path))
         << std::endl;
  } catch (const Error& error) {
    out_ << "warning: no trace: " << printable(error.message()) << std::endl;
  }
}

}  // namespace fleetrun::runtime
