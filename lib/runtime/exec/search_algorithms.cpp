#include "runtime/exec/search_algorithms.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/system/environment.h"
#include "runtime/exec/algorithm_cache.h"
#include "runtime/exec/propagate_layouts.h"
#include "runtime/graph/owner_of.h"

namespace fleetrun::runtime {
namespace {

constexpr int kRounds = 5;            // timed runs by each algorithm, after one that is not
constexpr double kEnoughSeconds = 1;  // for one problem: slow ones differ by more than the noise
constexpr double kWorthwhile =
    0.97;  // of the usual one's time: timings repeat within 2 % (another rounding is not a gain)
constexpr std::size_t kMebibyte = 1 << 20;
constexpr std::size_t kAlignment = 64;  // of what kernels are given

// One op of a program by itself, done by an algorithm in the layouts that it likes best.
class OpAlone {
 public:
  OpAlone(const OpView& view, const std::string& algorithm, const OpTable& ops, Device& device) {
    Op op = view.op();
    op.after.clear();
    op.attributes[kAlgorithm] = algorithm;
    for (auto* ids : {&op.inputs, &op.outputs})
      for (ValueId& id : *ids)
        if (id != kNone) id = own(view.program().value(id));
    program_.ops = {op};
    propagate_layouts(program_, ops, device, {});
    for (const Op& each : program_.ops)  // reorders may stand around it
      if (each.type == op.type)
        kernel_ = device.kernels().at(op.type).make(OpView(view.def(), program_, each), device);
  }

  std::size_t scratch_bytes() const { return kernel_->scratch_bytes(); }

  std::size_t bytes() const {
    std::size_t all = kernel_->scratch_bytes();
    for (const Value& value : program_.values) all += rounded(value.bytes());
    return all;
  }

  // Of bytes(), and nobody minds what is in there.
  void lie_at(void* memory) {
    auto* next = static_cast<std::byte*>(memory);
    for (const Value& value : program_.values) {
      addresses_.push_back(next);
      next += rounded(value.bytes());
    }
    context_.data = addresses_.data();
    context_.scratch = next;
  }

  void run() { kernel_->run(context_); }

 private:
  static std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  ValueId own(Value value) {
    value.of = kNone;
    if (const ValueId known = program_.find(value.name); known != kNone) return known;
    return program_.add_value(std::move(value));
  }

  Program program_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<void*> addresses_;
  RunContext context_;
};

// Ops that do the same with values of the same sizes.
struct Problem {
  std::vector<std::string> algorithms;  // that are allowed, the usual one first
  OpView example;
  std::vector<Op*> ops;
  std::string name;  // without what may differ between ranks
};
// By name, what a measurement depends on beside the device, and the names of the algorithms: the file may be of a build that
// knew others.
using Problems = std::map<std::string, Problem>;

void describe_arguments(const Program& program, const std::vector<ValueId>& ids, std::string& text) {
  for (const ValueId id : ids)
    text += id == kNone ? " -"
                        : fmt::format(" {}[{}]", describe(program.value(id).dtype),
                                      fmt::join(program.value(id).shape, ","));
}

// The attributes that the kernel reads: the stage of a pipeline is none of them.
std::string describe_problem(const OpView& op) {
  Op plain = op.op();
  set_owner(plain, kNone);
  std::string text = op.def().name;
  describe_arguments(op.program(), op.op().inputs, text);
  text += " ->";
  describe_arguments(op.program(), op.op().outputs, text);
  for (const auto& [name, value] : plain.attributes)
    if (name != kAlgorithm) text += fmt::format(" {}={}", name, describe(value));
  return text;
}

// Throws Error(config) when none is within the limit.
std::vector<std::string> allowed_algorithms(const OpView& op, const OpTable& ops, Device& device,
                                            const SearchOptions& options) {
  std::vector<std::string> names = device.kernels().at(op.def().name).algorithms(op, device);
  if (!options.search) names.resize(1);
  std::size_t least = SIZE_MAX;
  std::erase_if(names, [&](const std::string& name) {
    const std::size_t scratch = OpAlone(op, name, ops, device).scratch_bytes();
    least = std::min(least, scratch);
    return scratch > options.scratch_limit;
  });
  if (names.empty())
    op.fail(fmt::format(
        "it needs {} bytes of scratch memory, strategy.conv_workspace_size_limit allows {}: {} MB would do",
        least, options.scratch_limit, (least + kMebibyte - 1) / kMebibyte));
  return names;
}

Problems find_problems(const std::vector<Program*>& programs, const OpTable& ops, Device& device,
                       const SearchOptions& options) {
  Problems problems;
  std::map<std::string, std::string> texts;  // by descriptions without the algorithms
  for (Program* program : programs)
    for (Op& op : program->ops) {
      const auto kernel = device.kernels().find(op.type);
      if (kernel == device.kernels().end() || kernel->second.algorithms == nullptr) continue;
      const OpView view(find_op(ops, op.type), *program, op);
      const std::string name = describe_problem(view);
      std::string& text = texts[name];
      if (text.empty()) {
        Problem problem = {allowed_algorithms(view, ops, device, options), view, {}, name};
        text = fmt::format("{} team={} scratch={} by {}", name, options.team, options.scratch_limit,
                           fmt::join(problem.algorithms, ","));
        problems.emplace(text, std::move(problem));
      }
      problems.at(text).ops.push_back(&op);
    }
  return problems;
}

double by_the_clock(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The algorithms in turn, so that a busy moment meets all of them.
std::string fastest(const Problem& problem, const OpTable& ops, Device& device, const Stopwatch& stopwatch) {
  const std::size_t count = problem.algorithms.size();
  if (count == 1) return problem.algorithms.front();
  std::vector<std::unique_ptr<OpAlone>> trials;
  std::size_t bytes = 0;
  for (const std::string& name : problem.algorithms) {
    trials.push_back(std::make_unique<OpAlone>(problem.example, name, ops, device));
    bytes = std::max(bytes, trials.back()->bytes());
  }
  const std::unique_ptr<comm::Memory> memory = device.allocate(bytes);
  // Pages of its own: untouched ones would all be the kernel's page of zeros.
  std::memset(memory->data(), 0, bytes);
  for (const auto& trial : trials) trial->lie_at(memory->data());
  std::vector<std::vector<double>> times(count);
  double spent = 0;
  for (int round = 0; round < 2 || (round <= kRounds && spent < kEnoughSeconds); ++round)
    for (std::size_t i = 0; i < count; ++i) {
      const double seconds = stopwatch(problem.algorithms[i], [&] { trials[i]->run(); });
      if (round > 0) times[i].push_back(seconds);
      spent += seconds;
    }
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i)
    if (median(times[i]) < kWorthwhile * median(times[best])) best = i;
  return problem.algorithms[best];
}

std::string host_name() {
  std::array<char, 256> name{};  // longer than HOST_NAME_MAX
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Only what this build can do now: the file may be of another one.
void keep_allowed(const Problems& problems, const Choices& from, Choices& choices) {
  for (const auto& [text, problem] : problems) {
    const auto found = from.find(text);
    if (found == from.end()) continue;
    const auto& allowed = problem.algorithms;
    if (std::find(allowed.begin(), allowed.end(), found->second) != allowed.end())
      choices[text] = found->second;
  }
}

// A training does not fail because something is not remembered.
template <typename Work>
void despite_errors(AlgorithmSearch& search, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    search.warnings.push_back("the algorithms of convolutions: " + error.message());
  }
}

Choices known_or_measured(const Problems& problems, const OpTable& ops, Device& device,
                          const SearchOptions& options, AlgorithmSearch& search) {
  std::unique_ptr<AlgorithmCache> cache;
  Choices choices;
  despite_errors(search, [&] {
    cache = std::make_unique<AlgorithmCache>(cache_folder(Environment::of_this_process()), place_of(device));
    keep_allowed(problems, cache->read(), choices);
  });
  search.hits = static_cast<int>(choices.size());
  Choices found;
  double spent = 0;
  const Stopwatch stopwatch = [&](const std::string& algorithm, const std::function<void()>& run) {
    const double seconds = options.stopwatch ? options.stopwatch(algorithm, run) : by_the_clock(run);
    spent += seconds;
    return seconds;
  };
  for (const auto& [text, problem] : problems) {
    if (choices.contains(text)) continue;
    if (spent < options.patience_seconds)
      found[text] = fastest(problem, ops, device, stopwatch);
    else
      ++search.left;
  }
  search.searched = static_cast<int>(found.size());
  choices.insert(found.begin(), found.end());
  if (cache && !found.empty())
    despite_errors(search, [&] { keep_allowed(problems, cache->add(found), choices); });
  return choices;
}

// Those of rank 0, by the names of the problems, on every rank.
Choices agreed(const Choices& choices, const Problems& problems, comm::Communicator& communicator) {
  Choices of_names;
  for (const auto& [text, algorithm] : choices) of_names[problems.at(text).name] = algorithm;
  if (communicator.size() == 1) return of_names;
  JsonValue object = JsonValue::object();
  for (const auto& [name, algorithm] : of_names) object.add(name, algorithm);
  std::string text = to_json(object);
  auto size = static_cast<std::int64_t>(text.size());
  communicator.broadcast({&size, 1, DType::i64}, 0);
  text.resize(static_cast<std::size_t>(size));
  communicator.broadcast({text.data(), text.size(), DType::u8}, 0);
  const JsonDocument document = read_json(text);
  Choices all;
  for (const JsonMember& choice : document.root.members) all[choice.key] = choice.value.text;
  return all;
}

}  // namespace

std::string place_of(const Device& device) {
  return fmt::format("{}, {}, {}", host_name(), device.hardware(), device.version());
}

AlgorithmSearch search_algorithms(const std::vector<Program*>& programs, const OpTable& ops, Device& device,
                                  comm::Communicator& communicator, const SearchOptions& options) {
  AlgorithmSearch search;
  const Problems problems = find_problems(programs, ops, device, options);
  search.problems = static_cast<int>(problems.size());
  if (problems.empty()) return search;  // on all ranks: their programs are of one job
  Choices choices;
  if (options.search && communicator.rank() == 0)
    choices = known_or_measured(problems, ops, device, options, search);
  choices = agreed(choices, problems, communicator);
  for (const auto& [_, problem] : problems) {
    const auto chosen = choices.find(problem.name);
    if (chosen == choices.end())
      continue;  // no search, no time for it, or ranks that differ, which agree_on_program tells
    for (Op* op : problem.ops) op->attributes[kAlgorithm] = chosen->second;
    if (chosen->second == "winograd") ++search.winograd;
    if (chosen->second == "gemm") ++search.gemm;
  }
  return search;
}

std::string describe(const AlgorithmSearch& search) {
  if (search.problems == 0) return "";
  return fmt::format(
      "convolutions: #searched={}, #cache hits={}, {} of {} problems by Winograd, {} by gemm{}",
      search.searched, search.hits, search.winograd, search.problems, search.gemm,
      search.left > 0 ? fmt::format(", {} left to the next start", search.left) : "");
}

}  // namespace fleetrun::runtime
