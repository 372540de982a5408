// Runs a program again and again: kernels prepared, memory planned, order fixed. One run allocates nothing.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/run/timeline.h"
#include "comm/collective/communicator.h"
#include "runtime/exec/device_activities.h"
#include "runtime/exec/device_times.h"
#include "runtime/exec/exposure.h"
#include "runtime/exec/feeds.h"
#include "runtime/exec/graph_runner.h"
#include "runtime/exec/recorded_runs.h"
#include "runtime/exec/schedule.h"
#include "runtime/exec/storage.h"
#include "runtime/exec/stream_order.h"
#include "runtime/graph/program.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

// How long one op took.
struct OpTime {
  std::string type;  // "conv2d"
  std::string name;  // of its first output
  double seconds = 0;
  OpId op = 0;
};

struct ExecutorOptions {
  int threads = 1;  // ops in flight, without those that wait for other ranks
  int team = 1;     // compute threads of each
  // True: an all-reduce holds the thread that runs it until it is done. False: it is handed to its communicator's own
  // thread, or stream, and the thread goes on.
  bool wait_for_collectives = true;
  // Why no run with collectives is recorded. Empty: every rank has the same collectives in the same order, by one communicator of all ranks,
  // and nobody waits for them (RecordedRuns).
  std::string why_not_recorded_together = "the ranks work together in collectives";
  std::uint64_t seed = 1;
  bool share_in_place = true;    // outputs may take the place of inputs that nobody reads any more
  int drop_every = 0;            // runs after which activation memory is given back and made anew; 0: never
  bool keep_addresses = true;    // false: where values lie is looked up by their names before each run
  Timeline* timeline = nullptr;  // gets a span of each op; it outlives the executor
  bool measure_ops = false;      // op_ns() is wanted of every run, until stop_measuring_ops()
};

// Where the values of a program lie.
struct Places {
  std::unique_ptr<comm::Memory> arena;             // activations and scratch memory
  std::unordered_map<std::string, void*> by_name;  // every value
  std::vector<void*> by_id;                        // the same by ValueId, as looked up
};

// What is counted and measured of the runs so far.
struct Measurements {
  std::int64_t runs = 0;
  std::int64_t drops = 0;    // of activation memory
  std::int64_t lookups = 0;  // of where values lie
  Exposure exposure;
  std::vector<std::int64_t> op_ns, op_runs;    // by OpId
  std::vector<Timeline::Label> labels;         // by OpId, with a timeline
  std::vector<Timeline::Label> device_labels;  // the same of the device's side, with streams
  Timeline::Label drop_label = 0;
};

// The host's copies of what is fetched. All of them come at once, with the first that is wanted of a run.
struct Fetched {
  std::map<ValueId, std::unique_ptr<comm::Memory>> places;
  std::vector<Download> downloads;
  std::int64_t runs = 0;  // after which they came; 0: they come each time
};

// On a device with streams: their order, the feeds there, and what is fetched.
struct OnStreams {
  std::unique_ptr<StreamOrder> order;
  std::unique_ptr<Feeds> feeds;
  std::unique_ptr<Fetched> fetched;
  std::unique_ptr<RecordedRuns> recorded;
  std::unique_ptr<DeviceTimes> times;            // null: nobody wants them
  std::unique_ptr<DeviceActivities> activities;  // null: no timeline, or nothing sees them
  std::vector<ValueId> feed_ids;
  std::vector<void*> feed_places;  // of them, in the run that begins
};

// One more than ten members, because they are made one after the other, each from those before it.
class Executor {
 public:
  // `program` has its layouts decided; parameters, states and gradients are found in `storage` by name. Its
  // collectives find their communicator by its number.
  Executor(Program program, Device& device, const Storage& storage,
           const std::vector<comm::Communicator*>& communicators, const ExecutorOptions& options);
  ~Executor();

  // Where the next runs find a feed: plain memory of the feed's size, kept by the caller. A device with streams copies
  // it at once: what the caller writes there later needs another bind. Throws Error(internal) when `name` is not a feed.
  void bind(const std::string& name, const void* data);

  // For a training that goes on. The next run counts as step `step`, by which random ops draw. `merged`: runs since the last update of
  // strategy.gradient_merge.
  void start_at(std::uint64_t step, std::uint64_t merged) {
    context_.step = step;
    context_.merge_step = merged;
  }

  // One step. Throws the first error of any op, naming the op; the executor can run again afterwards. With streams
  // it returns when everything has been given to the device.
  void run();

  // How long each op but the collectives takes by itself, `repeats` times in a row with what it reads in the caches: the
  // median, in the order of the program. It works on memory of its own; no run may be under way.
  std::vector<OpTime> time_alone(int repeats);

  // A fetched value after a run, in plain layout, in memory of the host. With streams the first one of a run waits for the device and
  // brings all.
  const void* fetch(const std::string& name) const;
  // From now on the state `name` counts as a fetched value. Only runs change it.
  void fetch_too(const std::string& name);

  const Program& program() const { return program_; }
  const Schedule& schedule() const { return schedule_; }
  std::int64_t drops() const { return measured_.drops; }           // of activation memory, so far
  std::int64_t name_lookups() const { return measured_.lookups; }  // so far
  // In which the runs so far did nothing but communicate. With streams 0: the host does not see when the device works.
  std::int64_t communication_ns() const { return measured_.exposure.nanoseconds(); }
  // Runs that the device repeated from a recording so far, and why it does not; null where there is nothing to record.
  const RecordedRuns* recorded() const { return on_streams_.recorded.get(); }
  // By its communicators so far; see Communicator.
  std::uint64_t sent_bytes() const;
  void stop_measuring_ops() { options_.measure_ops = false; }
  // How long the runs so far were in each op, by OpId. With streams: how long the device was, in runs that were measured.
  const std::vector<std::int64_t>& op_ns() const { return measured_.op_ns; }

  // How often the host ran each op so far, by OpId: some ops run only in the last of several merged steps. What the device repeats from a
  // recording does not count.
  const std::vector<std::int64_t>& op_runs() const { return measured_.op_runs; }

  std::string describe_kernels() const;  // one line per op: its type, first output, implementation;
                                         // "fleetrun" where the code is our own

 private:
  void make_kernels();
  std::vector<OpMemory> memory_of_ops() const;
  void place_activations();
  void fill_scope(const Storage& storage);
  void look_up_addresses();
  void drop_activations();
  void use_streams(Streams& streams);
  const void* place_of(ValueId id) const;
  void download_fetched(Streams& streams) const;
  RunnerOptions runner_options(const TaskGraph& graph);
  void label_spans();
  void run_op(OpId id);
  void run_kernel(OpId id, RunContext& context);
  double seconds_alone(std::size_t id, int repeats);
  std::int64_t run_alone(OpId id, const RunContext& context);
  bool has_collectives() const;
  bool records_together() const { return has_collectives() && options_.why_not_recorded_together.empty(); }
  std::string why_not_recorded(const Streams& streams) const;
  bool wants_times() const;
  void run_timed();
  void note_times();
  void give_or_repeat_ops();
  void give_ops();
  const std::vector<void*>& places_of_feeds();
  void begin_run();
  void end_run();

  Program program_;
  Device& device_;
  ExecutorOptions options_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // by OpId
  Schedule schedule_;
  Places places_;
  std::vector<comm::Communicator*> communicators_;
  RunContext context_;
  Measurements measured_;
  OnStreams on_streams_;
  std::unique_ptr<GraphRunner> runner_;  // last: its threads use all of the above
};

}  // namespace fleetrun::runtime
