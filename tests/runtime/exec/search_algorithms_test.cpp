#include "runtime/exec/search_algorithms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "comm/collective/solo.h"
#include "runtime/exec/algorithm_cache.h"
#include "runtime/kernels/cpu/onednn/cpu_device.h"
#include "runtime/training/trainer/trainer.h"
#include "support/cache_here.h"
#include "support/leave_out.h"
#include "support/run_program.h"
#include "support/run_world.h"
#include "support/small_net.h"

namespace fleetrun::runtime::search_algorithms_test {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;
constexpr std::size_t kDirectScratch = 1000, kWinogradScratch = 3 * kMegabyte;
const std::set<std::string> kConvolutions = {"conv2d", "conv2d_grad_input", "conv2d_grad_weights"};

// Has two algorithms for every convolution, which do nothing in scratch memory of known sizes.
class TwoWays : public cpu::CpuDevice {
 public:
  explicit TwoWays(bool knows_both = true) : cpu::CpuDevice(CpuOptions{}), table_(cpu::CpuDevice::kernels()) {
    for (const std::string& type : kConvolutions)
      table_[type] = {.make = make, .algorithms = knows_both ? algorithms : only_direct};
  }
  const KernelTable& kernels() const override { return table_; }

 private:
  class Nothing : public Kernel {
   public:
    explicit Nothing(std::size_t scratch) : scratch_(scratch) {}
    void run(const RunContext&) override {}
    std::size_t scratch_bytes() const override { return scratch_; }

   private:
    std::size_t scratch_;
  };

  static std::vector<std::string> algorithms(const OpView&, Device&) { return {"direct", "winograd"}; }
  static std::vector<std::string> only_direct(const OpView&, Device&) { return {"direct"}; }
  static std::unique_ptr<Kernel> make(const OpView& op, Device&) {
    return std::make_unique<Nothing>(op.text(kAlgorithm) == "winograd" ? kWinogradScratch : kDirectScratch);
  }

  KernelTable table_;
};

// Winograd takes so many seconds, direct 1.
Stopwatch winograd_takes(double seconds) {
  return [seconds](const std::string& algorithm, const std::function<void()>& run) {
    run();
    return algorithm == "winograd" ? seconds : 1.0;
  };
}

SearchOptions options_with(double winograd_seconds, std::size_t limit = 4000 * kMegabyte) {
  return {.scratch_limit = limit, .stopwatch = winograd_takes(winograd_seconds)};
}

struct Searched {
  Program program = test::small_net(3);  // five convolutions, each another problem
  AlgorithmSearch search;

  std::set<std::string> algorithms() const {
    std::set<std::string> all;
    for (const Op& op : program.ops)
      if (const auto found = op.attributes.find(kAlgorithm); found != op.attributes.end())
        all.insert(std::get<std::string>(found->second));
    return all;
  }
};

Searched search_with(const SearchOptions& options, TwoWays device = TwoWays()) {
  const auto solo = comm::make_solo();
  Searched searched;
  searched.search = search_algorithms({&searched.program}, all_ops(), device, *solo, options);
  return searched;
}

using Names = std::set<std::string>;

TEST_CASE("the faster algorithm is chosen, the usual one unless another is clearly faster") {
  for (const auto& [seconds, chosen] :
       {std::pair{0.5, "winograd"}, std::pair{0.99, "direct"}, std::pair{2.0, "direct"}}) {
    const CacheHere cache;
    const Searched searched = search_with(options_with(seconds));
    CHECK(searched.algorithms() == Names{chosen});
    CHECK(searched.search.winograd == (seconds < 0.9 ? 5 : 0));
    for (const Op& op : searched.program.ops)
      CHECK(op.attributes.contains(kAlgorithm) == kConvolutions.contains(op.type));
  }
}

TEST_CASE("what is slow at the first run only does not lose by it") {
  const CacheHere cache;
  int runs = 0;
  const Searched searched =
      search_with({.scratch_limit = 4000 * kMegabyte, .stopwatch = [&](const std::string& algorithm, auto&) {
                     const bool first = runs++ % 12 < 2;
                     return algorithm == "winograd" ? (first ? 0.05 : 0.01) : 0.02;
                   }});
  CHECK(searched.algorithms() == Names{"winograd"});
}

TEST_CASE("conv_workspace_size_limit bounds the scratch memory of what may be chosen") {
  const CacheHere cache;
  CHECK(search_with(options_with(0.5, 3 * kMegabyte)).algorithms() == Names{"winograd"});
  CHECK(search_with(options_with(0.5, 3 * kMegabyte - 1)).algorithms() == Names{"direct"});
  CHECK(search_with(options_with(0.5, kDirectScratch)).algorithms() == Names{"direct"});
  CHECK_THROWS_WITH_AS(
      search_with(options_with(0.5, kDirectScratch - 1)),
      "conv2d (conv1): it needs 1000 bytes of scratch memory, strategy.conv_workspace_size_limit allows 999: 1 MB would do",
      Error);
  SearchOptions off = options_with(0.5, kDirectScratch - 1);
  off.search = false;
  CHECK_THROWS_AS(search_with(off), Error);
}

TEST_CASE("distinct problems are searched, not ops, and none that this host knows") {
  const CacheHere cache;
  TwoWays device;
  const auto solo = comm::make_solo();
  Program one = test::small_net(3), same = test::small_net(3), other = test::small_net(1);
  const auto counts = [&](const std::vector<Program*>& programs) {
    const AlgorithmSearch search = search_algorithms(programs, all_ops(), device, *solo, options_with(0.5));
    CHECK(search.warnings.empty());
    return std::array{search.searched, search.hits, search.problems};
  };
  CHECK(counts({&one, &same}) == std::array{5, 0, 5});
  CHECK(counts({&same}) == std::array{0, 5, 5});
  CHECK(counts({&other}) == std::array{2, 3, 5});  // the first convolution and its weights see another image
  CHECK(describe(search_with(options_with(0.5)).search) ==
        "convolutions: #searched=0, #cache hits=5, 5 of 5 problems by Winograd, 0 by gemm");
}

TEST_CASE("a search ends when its time is over, and the next start goes on with it") {
  const CacheHere cache;
  SearchOptions options = options_with(0.5);  // 1.5 s a round, two rounds a problem
  options.patience_seconds = 7;
  const Searched hasty = search_with(options);
  CHECK(hasty.search.left == 2);
  CHECK(
      describe(hasty.search) ==
      "convolutions: #searched=3, #cache hits=0, 3 of 5 problems by Winograd, 0 by gemm, 2 left to the next start");
  const Searched next = search_with(options);
  CHECK(describe(next.search) ==
        "convolutions: #searched=2, #cache hits=3, 5 of 5 problems by Winograd, 0 by gemm");
}

TEST_CASE("another team and another limit are other problems") {
  const CacheHere cache;
  SearchOptions options = options_with(0.5);
  CHECK(search_with(options).search.searched == 5);
  options.team = 2;
  CHECK(search_with(options).search.searched == 5);
  options.scratch_limit = kMegabyte;
  CHECK(search_with(options).search.searched == 5);
  CHECK(search_with(options).search.searched == 0);
}

TEST_CASE("without a search there is no attribute, no file, and nothing is timed") {
  const CacheHere cache;
  SearchOptions options = options_with(0.5);
  options.search = false;
  options.stopwatch = [](auto&, auto&) -> double { throw Error(ErrorKind::internal, "was timed"); };
  const Searched searched = search_with(options);
  CHECK(searched.algorithms().empty());
  CHECK(searched.search.searched == 0);
  CHECK(std::filesystem::is_empty(cache.folder().path()));
}

TEST_CASE("ranks do what rank 0 measured, also ranks with more threads for each op") {
  const CacheHere cache;
  testing::run_world(2, [&](comm::Communicator& communicator) {
    TwoWays device;
    Searched searched;
    SearchOptions options = options_with(0.5);
    options.team = 1 + communicator.rank();
    searched.search = search_algorithms({&searched.program}, all_ops(), device, communicator, options);
    CHECK(searched.algorithms() == Names{"winograd"});
  });
}

TEST_CASE("ranks do what rank 0 measured, whatever they would have") {
  for (const double of_rank_0 : {0.5, 2.0}) {
    const CacheHere cache;
    testing::run_world(3, [&](comm::Communicator& communicator) {
      TwoWays device;
      Searched searched;
      const bool first = communicator.rank() == 0;
      searched.search = search_algorithms({&searched.program}, all_ops(), device, communicator,
                                          options_with(first ? of_rank_0 : 1 / of_rank_0));
      CHECK(searched.algorithms() == Names{of_rank_0 < 1 ? "winograd" : "direct"});
      CHECK(searched.search.searched == (first ? 5 : 0));
    });
  }
}

TEST_CASE("of two runs that search at the same time the one that is done first decides for both") {
  const CacheHere cache;
  bool first = true;
  SearchOptions options = options_with(2.0);
  options.stopwatch = [&, slow = options.stopwatch](const std::string& algorithm,
                                                    const std::function<void()>& run) {
    if (std::exchange(first, false))
      CHECK(search_with(options_with(0.5)).algorithms() ==
            Names{"winograd"});  // the other run, from start to end
    return slow(algorithm, run);
  };
  const Searched searched = search_with(options);
  CHECK(searched.search.searched == 5);
  CHECK(searched.algorithms() == Names{"winograd"});
  CHECK(search_with(options_with(2.0)).algorithms() == Names{"winograd"});
}

TEST_CASE("a broken file is reported once and made anew; what it knows that is not allowed is searched") {
  const CacheHere cache;
  search_with(options_with(0.5));
  std::string name;
  for (const auto& entry : std::filesystem::directory_iterator(cache.folder().path()))
    if (entry.path().extension() == ".json") name = entry.path().filename();
  cache.folder().write(name, "{");
  const Searched broken = search_with(options_with(2.0));
  REQUIRE(broken.search.warnings.size() == 1);
  CHECK(broken.search.warnings[0].find(name + " is not a list of algorithms: line 1: ") != std::string::npos);
  CHECK(broken.search.searched == 5);
  CHECK(search_with(options_with(0.5)).search.warnings.empty());
  CHECK(search_with(options_with(0.5)).search.hits == 5);

  std::string content = cache.folder().read(name);
  for (std::size_t at = 0; (at = content.find("\"direct\"", at)) != std::string::npos;)
    content.replace(at, 8, "\"fft\"");
  cache.folder().write(name, content);
  const Searched unknown = search_with(options_with(0.5));
  CHECK(unknown.search.searched == 5);
  CHECK(unknown.algorithms() == Names{"winograd"});
}

TEST_CASE("a build that knows another algorithm searches again") {
  const CacheHere cache;
  CHECK(search_with(options_with(0.5), TwoWays(false)).algorithms() == Names{"direct"});
  const Searched newer = search_with(options_with(0.5));
  CHECK(newer.search.searched == 5);
  CHECK(newer.algorithms() == Names{"winograd"});
}

TEST_CASE("a cache that cannot be written is reported, and what was measured holds for this run") {
  const CacheHere cache("file/below");
  cache.folder().write("file", "");
  const Searched searched = search_with(options_with(0.5));
  CHECK(searched.algorithms() == Names{"winograd"});
  REQUIRE(searched.search.warnings.size() == 1);
  CHECK(searched.search.warnings[0].starts_with("the algorithms of convolutions: creating folder "));
}

TEST_CASE(
    "conv_workspace_size_limit: with 1 MB no kernel has more, and other algorithms are chosen than with 4000") {
  if (!__builtin_cpu_supports("avx512bw") || std::getenv("DNNL_MAX_CPU_ISA") != nullptr)
    LEAVE_OUT("oneDNN has no Winograd convolution without AVX-512");
  const CacheHere cache;
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  const auto chosen_within = [&](std::size_t limit) {
    Program program;
    Builder builder(program, all_ops());
    const ValueId x = builder.feed("x", {8, 64, 28, 28});
    const ValueId w = builder.parameter("w", {64, 64, 3, 3}, {});
    builder.op("y", "conv2d", {{"x", x}, {"w", w}}, test::convolution(1, 1));
    search_algorithms({&program}, all_ops(), *device, *solo, options_with(0.5, limit));
    std::string chosen = std::get<std::string>(program.op(0).attributes.at(kAlgorithm));
    const test::ProgramRun run(program, all_ops(), *device);
    for (std::size_t i = 0; i < run.program().ops.size(); ++i) CHECK(run.kernel(i).scratch_bytes() <= limit);
    return chosen;
  };
  CHECK(chosen_within(4000 * kMegabyte) == "winograd");
  CHECK(chosen_within(kMegabyte) == "direct");
}

job::JobSpec resnet20(int batch) {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet20;
  job.data.batch_size = batch;
  return job;
}

// By type, sizes and attributes: what the search has to tell apart here.
std::size_t distinct_convolutions(const Trainer& trainer) {
  std::set<std::string> distinct;
  for (const Executor* executor : {&trainer.executor(), &trainer.evaluation_executor()}) {
    const Program& program = executor->program();
    for (const Op& op : program.ops) {
      if (!kConvolutions.contains(op.type)) continue;
      std::string text = op.type;
      for (const auto* ids : {&op.inputs, &op.outputs})
        for (const ValueId id : *ids)
          text += id == kNone ? " -" : fmt::format(" {}", program.value(id).shape);
      distinct.insert(text + describe(op.attributes.at("strides")));
    }
  }
  return distinct.size();
}

TEST_CASE("cudnn_exhaustive_search: a training searches its distinct convolutions once on this host") {
  const CacheHere cache;
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  const auto search_of = [&](const job::JobSpec& job) {
    const Trainer trainer(job, {.input_shape = {3, 16, 16}, .classes = 10}, *device, *solo);
    if (job.strategy.cudnn_exhaustive_search)
      CHECK(static_cast<std::size_t>(trainer.algorithm_search().problems) == distinct_convolutions(trainer));
    for (const Op& op : trainer.executor().program().ops)
      CHECK(op.attributes.contains(kAlgorithm) ==
            (job.strategy.cudnn_exhaustive_search && kConvolutions.contains(op.type)));
    return trainer.algorithm_search();
  };
  const AlgorithmSearch first = search_of(resnet20(2));
  CHECK(first.searched == first.problems);
  CHECK(first.searched > 10);
  CHECK(first.searched < 3 * 19);  // ResNet-20 repeats its blocks
  CHECK(search_of(resnet20(2)).searched == 0);
  CHECK(search_of(resnet20(2)).hits == first.problems);
  CHECK(search_of(resnet20(4)).searched == first.problems);
  job::JobSpec off = resnet20(8);
  off.strategy.cudnn_exhaustive_search = false;
  CHECK(search_of(off).searched == 0);
}

}  // namespace
}  // namespace fleetrun::runtime::search_algorithms_test
