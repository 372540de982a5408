#include "runtime/exec/executor.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

std::string output_name(const Program& program, const Op& op) {
  for (const ValueId id : op.outputs)
    if (id != kNone) return program.value(id).name;
  return "";
}

std::string name_of(const Program& program, const Op& op) {
  const std::string output = output_name(program, op);
  return output.empty() ? op.type : fmt::format("{} ({})", op.type, output);
}

// An op that is under way, for whoever measures. Only the host's side of it where the device has streams.
class Measured {
 public:
  Measured(Exposure& exposure, bool collective)
      : exposure_(exposure), collective_(collective), start_ns_(exposure.begin(collective)) {}
  ~Measured() {
    if (open_) exposure_.end(collective_);  // it failed
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  std::int64_t end(Timeline* timeline, Timeline::Label label) {  // the nanoseconds that it took
    open_ = false;
    const std::int64_t end_ns = exposure_.end(collective_);
    if (timeline != nullptr) timeline->note(label, start_ns_, end_ns);
    return end_ns - start_ns_;
  }

 private:
  Exposure& exposure_;
  const bool collective_;
  const std::int64_t start_ns_;
  bool open_ = true;
};

}  // namespace

Executor::Executor(Program program, Device& device, const Storage& storage,
                   const std::vector<comm::Communicator*>& communicators, const ExecutorOptions& options)
    : program_(std::move(program)), device_(device), options_(options), communicators_(communicators) {
  device_.enter_thread(options_.team);  // kernels are made for the team that runs them
  make_kernels();
  measured_.op_ns.resize(program_.ops.size());
  measured_.op_runs.resize(program_.ops.size());
  schedule_ = plan_schedule(program_, memory_of_ops());
  places_.by_id.resize(program_.values.size(), nullptr);
  fill_scope(storage);
  place_activations();
  look_up_addresses();
  measured_.lookups = 0;  // those of the steps are counted
  context_ = {.data = places_.by_id.data(), .seed = options_.seed};
  if (options_.timeline != nullptr) label_spans();
  TaskGraph graph = schedule_.graph;
  if (Streams* streams = device_.streams()) {
    use_streams(*streams);
    chain_all_collectives(program_, graph);  // the device takes them in one order on every rank
  }
  const RunnerOptions how = runner_options(graph);
  runner_ = std::make_unique<GraphRunner>(std::move(graph), how);
  if (how.substitutes > 0)
    for (comm::Communicator* communicator : communicators_)
      communicator->on_sleep([this] { runner_->let_others_work(); });
}

Executor::~Executor() {
  for (comm::Communicator* communicator : communicators_) communicator->on_sleep(nullptr);
}

RunnerOptions Executor::runner_options(const TaskGraph& graph) {
  RunnerOptions how = {.threads = options_.threads,
                       .run_task = [this](int task) { run_op(task); },
                       .enter_thread = [this] { device_.enter_thread(options_.team); }};
  for (const int lane : graph.lane)
    if (lane >= static_cast<int>(communicators_.size()))
      throw Error(ErrorKind::internal, fmt::format("a collective goes by communicator {}, there are {}", lane,
                                                   communicators_.size()));
  if (!has_collectives()) return how;
  const int communicators = static_cast<int>(communicators_.size());
  if (options_.wait_for_collectives)
    how.substitutes = std::max(0, communicators + 1 - options_.threads);
  else if (!on_streams_.order)
    how.lanes = communicators;
  return how;
}

void Executor::label_spans() {
  measured_.drop_label = options_.timeline->add(
      {.lane = Lane::compute, .name = "drop_scope", .category = "memory", .value = ""});
  const auto add = [this](const Op& op, Lane compute, Lane communication) {
    return options_.timeline->add({.lane = op.role == Role::communication ? communication : compute,
                                   .name = op.type,
                                   .category = std::string(runtime::describe(op.role)),
                                   .value = output_name(program_, op)});
  };
  for (const Op& op : program_.ops) measured_.labels.push_back(add(op, Lane::compute, Lane::communication));
  if (device_.streams() == nullptr) return;
  for (const Op& op : program_.ops)
    measured_.device_labels.push_back(add(op, Lane::device, Lane::device_communication));
}

void Executor::make_kernels() {
  for (const Op& op : program_.ops) {
    const auto found = device_.kernels().find(op.type);
    if (found == device_.kernels().end())
      throw Error(ErrorKind::internal,
                  fmt::format("op {} has no {} kernel in this build", op.type, device_.name()));
    kernels_.push_back(with_context(fmt::format("preparing {}", name_of(program_, op)), [&] {
      return found->second.make(OpView(find_op(all_ops(), op.type), program_, op), device_);
    }));
  }
}

std::vector<OpMemory> Executor::memory_of_ops() const {
  std::vector<OpMemory> memory(program_.ops.size());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i].scratch_bytes = kernels_[i]->scratch_bytes();
    if (!options_.share_in_place || !device_.kernels().find(program_.ops[i].type)->second.shares_in_place)
      continue;
    const OpView op(find_op(all_ops(), program_.ops[i].type), program_, program_.ops[i]);
    for (const auto& [output, input] : op.def().may_share)
      memory[i].may_share.emplace_back(op.output_id(output), op.input_id(input));
  }
  return memory;
}

void Executor::fill_scope(const Storage& storage) {
  for (const Value& value : program_.values)
    if (value.kind != ValueKind::activation && value.kind != ValueKind::feed)
      places_.by_name[value.name] = storage.data(value.name);
}

void Executor::place_activations() {
  places_.arena = device_.allocate(schedule_.arena_bytes);
  auto* arena = static_cast<std::byte*>(places_.arena->data());
  for (std::size_t i = 0; i < program_.values.size(); ++i)
    if (schedule_.value_offsets[i])
      places_.by_name[program_.values[i].name] = arena + *schedule_.value_offsets[i];
}

void Executor::look_up_addresses() {
  const auto look_up = [this](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      if (id == kNone) continue;
      const auto found = places_.by_name.find(program_.value(id).name);
      if (found != places_.by_name.end()) places_.by_id[static_cast<std::size_t>(id)] = found->second;
      ++measured_.lookups;
    }
  };
  for (const Op& op : program_.ops) {
    look_up(op.inputs);
    look_up(op.outputs);
  }
}

// Nobody is at work in it: a run has ended, and with streams the device has.
void Executor::drop_activations() {
  const std::int64_t start = monotonic_ns();
  if (Streams* streams = device_.streams()) streams->synchronise();
  const void* const before = places_.arena->data();
  places_.arena.reset();
  place_activations();
  if (on_streams_.recorded) on_streams_.recorded->forget_if(places_.arena->data() != before);
  look_up_addresses();
  ++measured_.drops;
  if (options_.timeline != nullptr) options_.timeline->note(measured_.drop_label, start, monotonic_ns());
}

void Executor::use_streams(Streams& streams) {
  on_streams_.order = std::make_unique<StreamOrder>(plan_streams(program_, schedule_.graph), streams);
  on_streams_.feeds = std::make_unique<Feeds>(program_, device_);
  on_streams_.fetched = std::make_unique<Fetched>();
  for (const ValueId id : program_.fetches) fetch_too(program_.value(id).name);
  on_streams_.feed_ids = program_.of_kind(ValueKind::feed);
  on_streams_.feed_places.resize(on_streams_.feed_ids.size());
  if (options_.timeline != nullptr || options_.measure_ops)
    on_streams_.times = std::make_unique<DeviceTimes>(streams, program_.ops.size());
  if (options_.timeline != nullptr)
    if (auto watch = device_.make_activity_watch())
      on_streams_.activities = std::make_unique<DeviceActivities>(std::move(watch), *options_.timeline);
  if (!streams.can_record() && !records_together()) return;
  const auto agree = [this](bool mine) {
    std::int32_t least = mine ? 1 : 0;
    communicators_.front()->all_reduce({&least, 1, DType::i32}, comm::ReduceOp::min);
    return least == 1;
  };
  on_streams_.recorded = std::make_unique<RecordedRuns>(streams, why_not_recorded(streams),
                                                        records_together() ? agree : RecordedRuns::Agree());
}

bool Executor::has_collectives() const {
  return std::any_of(schedule_.graph.lane.begin(), schedule_.graph.lane.end(),
                     [](int lane) { return lane != TaskGraph::kNoLane; });
}

// A recording repeats what the host gave to the device: nothing may depend on the number of the step, and nobody waits in between.
std::string Executor::why_not_recorded(const Streams& streams) const {
  if (!streams.can_record()) return "FLEETRUN_CUDA_GRAPHS=0 turns them off";
  if (has_collectives() && !records_together()) return options_.why_not_recorded_together;
  if (options_.timeline != nullptr) return "the ops are traced";
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    if (schedule_.every[i] != 1) return "some ops run in some steps only";
    const KernelDef& kernel = device_.kernels().find(program_.ops[i].type)->second;
    if (kernel.decided_each_run != nullptr) return kernel.decided_each_run;
  }
  return "";
}

void Executor::bind(const std::string& name, const void* data) {
  const ValueId id = program_.find(name);
  if (id == kNone || program_.value(id).kind != ValueKind::feed)
    throw Error(ErrorKind::internal, fmt::format("{} is not a feed of the program", name));
  // No op writes a feed: verify() saw to it.
  void* const place = on_streams_.feeds ? on_streams_.feeds->put(id, data) : const_cast<void*>(data);
  places_.by_id[static_cast<std::size_t>(id)] = places_.by_name[name] = place;
}

void Executor::begin_run() {
  device_.enter_thread(options_.team);
  if (options_.drop_every > 0 && measured_.runs > 0 && measured_.runs % options_.drop_every == 0)
    drop_activations();
  else if (!options_.keep_addresses)
    look_up_addresses();
  ++measured_.runs;
}

void Executor::end_run() {
  if (on_streams_.feeds) on_streams_.feeds->release();
  ++context_.step;
  ++context_.merge_step;
}

void Executor::run() {
  begin_run();
  if (wants_times())
    run_timed();
  else
    give_or_repeat_ops();
  end_run();
}

bool Executor::wants_times() const {
  return on_streams_.times &&
         (options_.measure_ops || (options_.timeline != nullptr && options_.timeline->is_open()));
}

void Executor::run_timed() {
  const bool traced = on_streams_.activities && options_.timeline->is_open();
  if (traced) on_streams_.activities->begin();
  try {
    on_streams_.times->begin();
    give_or_repeat_ops();
    note_times();
  } catch (...) {
    on_streams_.times->cancel();
    if (traced) on_streams_.activities->cancel();
    throw;
  }
  if (traced) on_streams_.activities->end();
}

void Executor::note_times() {
  on_streams_.times->end([this](OpId id, std::int64_t start_ns, std::int64_t end_ns) {
    const auto at = static_cast<std::size_t>(id);
    measured_.op_ns[at] += end_ns - start_ns;
    if (options_.timeline != nullptr) options_.timeline->note(measured_.device_labels[at], start_ns, end_ns);
  });
}

void Executor::give_or_repeat_ops() {
  if (on_streams_.recorded && !options_.measure_ops)
    on_streams_.recorded->run(places_of_feeds(), [this] { give_ops(); });
  else
    give_ops();
}

// In the order of the program, which is one of the graph. Where nothing may be recorded, by the runner as ever.
void Executor::give_ops() {
  if (on_streams_.order) on_streams_.order->begin();
  if (on_streams_.recorded && on_streams_.recorded->why_not().empty())
    for (std::size_t i = 0; i < program_.ops.size(); ++i) run_op(static_cast<OpId>(i));
  else
    runner_->run();
  if (on_streams_.order) on_streams_.order->end();
}

const std::vector<void*>& Executor::places_of_feeds() {
  for (std::size_t i = 0; i < on_streams_.feed_ids.size(); ++i)
    on_streams_.feed_places[i] = places_.by_id[static_cast<std::size_t>(on_streams_.feed_ids[i])];
  return on_streams_.feed_places;
}

std::vector<OpTime> Executor::time_alone(int repeats) {
  device_.enter_thread(options_.team);
  std::vector<OpTime> times;
  for (std::size_t id = 0; id < program_.ops.size(); ++id) {
    const Op& op = program_.ops[id];
    if (op.role != Role::communication)
      times.push_back(
          {op.type, output_name(program_, op), seconds_alone(id, repeats), static_cast<OpId>(id)});
  }
  return times;
}

// On memory of its own: nothing of a training is touched.
double Executor::seconds_alone(std::size_t id, int repeats) {
  const Op& op = program_.ops[id];
  std::vector<std::unique_ptr<comm::Memory>> memory;
  std::vector<void*> addresses(program_.values.size(), nullptr);
  Streams* const streams = device_.streams();
  for (const std::vector<ValueId>* ids : {&op.inputs, &op.outputs})
    for (const ValueId value : *ids) {
      if (value == kNone || addresses[static_cast<std::size_t>(value)] != nullptr) continue;
      const std::size_t bytes = program_.value(value).bytes();
      memory.push_back(device_.allocate(bytes));
      addresses[static_cast<std::size_t>(value)] = memory.back()->data();
      // Pages that nobody wrote are all one page of zeros, which stays in the caches.
      if (streams == nullptr) std::memset(memory.back()->data(), 0, bytes);
    }
  memory.push_back(device_.allocate(kernels_[id]->scratch_bytes()));
  RunContext context = context_;
  context.data = addresses.data();
  context.scratch = memory.back()->data();
  std::vector<double> seconds;
  for (int i = -1; i < repeats; ++i) {  // the first touches the memory
    const std::int64_t took = run_alone(static_cast<OpId>(id), context);
    if (i >= 0) seconds.push_back(static_cast<double>(took) / 1e9);
  }
  const auto median = seconds.begin() + repeats / 2;
  std::nth_element(seconds.begin(), median, seconds.end());
  return *median;
}

// In nanoseconds. A device with streams tells its own if ops are measured; otherwise the host's wait for it counts, too.
std::int64_t Executor::run_alone(OpId id, const RunContext& context) {
  Kernel& kernel = *kernels_[static_cast<std::size_t>(id)];
  const std::int64_t start = monotonic_ns();
  DeviceTimes* const times = on_streams_.times.get();
  if (times == nullptr) {
    kernel.run(context);
    if (Streams* streams = device_.streams()) streams->synchronise();
    return monotonic_ns() - start;
  }
  std::int64_t took = 0;
  times->begin();
  kernel.run(context);  // the device is busy with it while the host gives it the next one
  times->stamp(id, kComputeStream, [&] { kernel.run(context); });
  times->end([&](OpId, std::int64_t from, std::int64_t to) { took = to - from; });
  return took;
}

std::uint64_t Executor::sent_bytes() const {
  std::uint64_t bytes = 0;
  for (const comm::Communicator* communicator : communicators_) bytes += communicator->sent_bytes();
  return bytes;
}

void Executor::run_op(OpId id) {
  RunContext context = context_;
  const auto at = static_cast<std::size_t>(id);
  if ((context.merge_step + 1) % static_cast<std::uint64_t>(schedule_.every[at]) != 0) return;
  const int communicator = schedule_.graph.lane[at];
  if (communicator != TaskGraph::kNoLane)
    context.communicator = communicators_[static_cast<std::size_t>(communicator)];
  context.scratch = static_cast<std::byte*>(places_.arena->data()) + schedule_.scratch_offsets[at];
  try {
    Measured measured(measured_.exposure, communicator != TaskGraph::kNoLane && !on_streams_.order);
    run_kernel(id, context);
    ++measured_.op_runs[at];
    const std::int64_t took =
        measured.end(options_.timeline, options_.timeline != nullptr ? measured_.labels[at] : 0);
    if (!on_streams_.order) measured_.op_ns[at] += took;
  } catch (const Error& error) {
    throw error.with(fmt::format("running {}", name_of(program_, program_.op(id))));
  }
}

// Without streams the kernel is done when it returns.
void Executor::run_kernel(OpId id, RunContext& context) {
  Kernel& kernel = *kernels_[static_cast<std::size_t>(id)];
  if (!on_streams_.order) return kernel.run(context);
  on_streams_.order->before(id);
  context.stream = on_streams_.order->stream_of(id);
  if (on_streams_.times && on_streams_.times->is_running())
    on_streams_.times->stamp(id, context.stream, [&] { kernel.run(context); });
  else
    kernel.run(context);
  on_streams_.order->after(id);
}

const void* Executor::fetch(const std::string& name) const {
  const ValueId id = program_.find(name);
  if (id == kNone || !program_.value(id).layout.plain())
    throw Error(ErrorKind::internal,
                fmt::format("{} cannot be fetched: there is no such value in plain layout", name));
  Streams* const streams = device_.streams();
  if (streams == nullptr) return place_of(id);
  const auto host = on_streams_.fetched->places.find(id);
  if (host == on_streams_.fetched->places.end())
    throw Error(ErrorKind::internal, fmt::format("{} is not fetched by the program", name));
  if (on_streams_.fetched->runs == 0 || on_streams_.fetched->runs != measured_.runs)
    download_fetched(*streams);
  return host->second->data();
}

void Executor::fetch_too(const std::string& name) {
  Streams* const streams = device_.streams();
  const ValueId id = program_.find(name);
  if (streams == nullptr || id == kNone) return;
  on_streams_.fetched->places[id] = streams->allocate_staging(program_.value(id).bytes());
  on_streams_.fetched->downloads.reserve(on_streams_.fetched->places.size());
}

const void* Executor::place_of(ValueId id) const {
  const auto found = places_.by_name.find(program_.value(id).name);
  return found == places_.by_name.end() ? nullptr : found->second;
}

void Executor::download_fetched(Streams& streams) const {
  Fetched& fetched = *on_streams_.fetched;
  fetched.downloads.clear();
  for (const auto& [id, host] : fetched.places)
    fetched.downloads.push_back({place_of(id), host->data(), program_.value(id).bytes()});
  streams.download_all(fetched.downloads);
  fetched.runs = measured_.runs;
}

std::string Executor::describe_kernels() const {
  std::string text;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const std::string implementation = kernels_[i]->describe();
    text += fmt::format("{}: {}\n", name_of(program_, program_.ops[i]),
                        implementation.empty() ? "fleetrun" : implementation);
  }
  return text;
}

}  // namespace fleetrun::runtime
