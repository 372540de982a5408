// What a training step of ResNet-50 asks of the device, as CUDA on the host counts it. docs/cuda.md has the tables. The counts depend on
// the network and on the strategy, but not on the sizes of images and batches.
#include <doctest/doctest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "comm/rendezvous/memory_store.h"
#include "cuda/on_host/counts.h"
#include "job/spec/settle_strategy.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/executor.h"
#include "runtime/kernels/load_plugin.h"
#include "runtime/training/setup/compute_options.h"
#include "runtime/training/trainer/trainer.h"
#include "runtime/training/trainer/training_communicators.h"
#include "support/process_world.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::step_counts_test {
namespace {

using cuda::on_host::Counts;

constexpr int kBatch = 2, kSide = 32;
constexpr ModelFacts kFacts = {.input_shape = {3, kSide, kSide}, .classes = 10};

const Counts& counts() {
  static const auto entry = [] {
    load_plugin(FLEETRUN_CUDA_PLUGIN);
    void* const library = ::dlopen(FLEETRUN_CUDA_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(library != nullptr);
    return reinterpret_cast<cuda::on_host::CountsEntry>(::dlsym(library, cuda::on_host::kCountsEntry));
  }();
  return *entry();
}

Counts counted(const std::function<void()>& work) {
  const Counts before = counts();
  work();
  Counts more = counts();
  for (const auto count : {&Counts::kernels, &Counts::cudnn, &Counts::cublas, &Counts::nccl,
                           &Counts::registered, &Counts::fills, &Counts::moves, &Counts::uploads,
                           &Counts::uploaded_bytes, &Counts::downloads, &Counts::downloaded_bytes,
                           &Counts::recorded, &Counts::graph_launches, &Counts::waits, &Counts::allocations})
    more.*count -= before.*count;
  return more;
}

// A device with room for the network, which computes nothing: that would take minutes.
class Device50 {
 public:
  Device50(const job::StrategySpec& strategy, bool records, bool registers = false) {
    ::setenv("FLEETRUN_ON_HOST_MEBIBYTES", "1024", 1);
    ::setenv("FLEETRUN_ON_HOST_COMPUTE", "0", 1);
    Environment environment;
    environment.set("FLEETRUN_CUDA_GRAPHS", records ? "1" : "0");
    environment.set("FLEETRUN_NCCL_REGISTER", registers ? "1" : "0");
    device_ = load_plugin(FLEETRUN_CUDA_PLUGIN).make_device(plugin_options("cuda:0", strategy, environment));
    device_->enter_thread(1);
  }
  ~Device50() {
    alone_.reset();
    device_.reset();
    ::unsetenv("FLEETRUN_ON_HOST_MEBIBYTES");
    ::unsetenv("FLEETRUN_ON_HOST_COMPUTE");
  }
  Device50(const Device50&) = delete;
  Device50& operator=(const Device50&) = delete;

  Device& operator*() { return *device_; }

  // The communicator of a rank without others.
  comm::Communicator& alone() {
    if (!alone_) alone_ = device_->make_communicator({store_, 0, 1}, 0);
    return *alone_;
  }

 private:
  std::unique_ptr<Device> device_;
  comm::MemoryStore store_;
  std::unique_ptr<comm::Communicator> alone_;
};

job::JobSpec resnet50(bool amp) {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet50;
  job.data.batch_size = kBatch;
  job.strategy.cudnn_exhaustive_search = false;
  job.strategy.amp = amp;
  return job;
}

struct Batch50 {
  std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(std::size_t{kBatch} * 3 * kSide * kSide);
  std::vector<ViewNumbers> views = std::vector<ViewNumbers>(kBatch);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kBatch);

  BatchView view() const { return {.labels = labels.data(), .pixels = pixels.data(), .views = views.data()}; }
};

// Steps without a trainer, which would take a second to draw the first weights.
class Steps {
 public:
  Steps(const job::JobSpec& job, Device& device, const Communicators& ranks) {
    const OpNames device_ops = ops_of(device.kernels());
    Programs programs = build_programs(job, kFacts, all_ops(),
                                       {.world_size = ranks.flat.size(),
                                        .device_ops = &device_ops,
                                        .narrow = DType::f16,
                                        .feeds = ImageForm::pixels},
                                       {device, ranks.flat, search_options(job.strategy, 1)});
    storage_ = std::make_unique<Storage>(programs.training, device, *ranks.gradients.front());
    executor_ = std::make_unique<Executor>(std::move(programs.training), device, *storage_, ranks.gradients,
                                           executor_options(job, 0, 1));
  }

  // Each fetches the loss.
  Counts next() {
    return counted([this] {
      executor_->bind("learning_rate", &rate_);
      bind_samples(*executor_, batch_.view());
      executor_->run();
      executor_->fetch("loss");
    });
  }

 private:
  const Batch50 batch_;
  const float rate_ = 0.1F;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Executor> executor_;
};

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

void check_in_document(const std::string& row) {
  std::ifstream file(FLEETRUN_SOURCE_DIR "/docs/cuda.md");
  std::ostringstream text;
  text << file.rdbuf();
  INFO("docs/cuda.md has no row: " << row);
  CHECK(text.str().find("\n" + row + "\n") != std::string::npos);
}

void check_needs_nothing_new(const Counts& step) {
  CHECK(step.allocations == 0);
  CHECK(step.fills == 0);
  CHECK(step.recorded == 0);
}

// A strategy, and what sets it apart.
struct Choice {
  std::string text;
  std::function<void(job::StrategySpec&)> set;
  int steps = 3;  // the test counts only the last step
  bool with_amp = true;
};

std::vector<Choice> choices() {
  const auto build = [](const std::string& text, bool job::BuildStrategySpec::*field, bool value) {
    return Choice{fmt::format("`build_strategy.{}={}`", text, value),
                  [=](job::StrategySpec& strategy) { strategy.build_strategy.*field = value; }};
  };
  const auto merge = [](const std::string& which, int steps) {
    return Choice{"`gradient_merge=true`, `k_steps` 2: a step that " + which,
                  [](job::StrategySpec& strategy) {
                    strategy.gradient_merge = true;
                    strategy.gradient_merge_configs.k_steps = 2;
                  },
                  steps};
  };
  using Build = job::BuildStrategySpec;
  return {{"the defaults", [](job::StrategySpec&) {}},
          build("fuse_bn_act_ops", &Build::fuse_bn_act_ops, true),
          build("fuse_bn_add_act_ops", &Build::fuse_bn_add_act_ops, false),
          {"`build_strategy.fuse_bn_add_act_ops=false`, `build_strategy.fuse_elewise_add_act_ops=true`",
           [](job::StrategySpec& strategy) {
             strategy.build_strategy.fuse_bn_add_act_ops = false;
             strategy.build_strategy.fuse_elewise_add_act_ops = true;
           }},
          build("enable_auto_fusion", &Build::enable_auto_fusion, true),
          build("fuse_all_optimizer_ops", &Build::fuse_all_optimizer_ops, true),
          build("enable_inplace", &Build::enable_inplace, false),
          {"`build_strategy.fuse_bn_act_ops=true`, `build_strategy.fuse_all_optimizer_ops=true`",
           [](job::StrategySpec& strategy) {
             strategy.build_strategy.fuse_bn_act_ops = true;
             strategy.build_strategy.fuse_all_optimizer_ops = true;
           }},
          {"`recompute=true`", [](job::StrategySpec& strategy) { strategy.recompute = true; }},
          merge("only adds gradients", 5),
          merge("updates the parameters", 4)};
}

std::string work_of(const Counts& step) {
  return fmt::format("{} | {} | {}", step.kernels, step.cudnn, step.cublas);
}

TEST_CASE("the table of docs/cuda.md about the work of a step of ResNet-50 is what CUDA on the host counts") {
  for (const Choice& choice : choices()) {
    CAPTURE(choice.text);
    std::string row = "| " + choice.text;
    for (const bool amp : {false, true}) {
      job::JobSpec job = resnet50(amp);
      choice.set(job.strategy);
      job.strategy = job::settle_strategy(job.strategy, {.all = 1, .of_node = 1, .gpu = true}).strategy;
      Device50 device(job.strategy, false);
      Steps steps(job, *device, device.alone());
      Counts step;
      for (int i = 0; i < choice.steps; ++i) step = steps.next();
      check_needs_nothing_new(step);
      CHECK(step.waits == 1);
      CHECK(step.moves == 0);
      row += " | " + work_of(step);
    }
    check_in_document(row + " |");
  }
}

std::string traffic_of(const Counts& step) {
  return fmt::format("{} | {} | {} | {} | {} | {}", step.kernels + step.cudnn + step.cublas,
                     step.graph_launches, with_commas(step.uploaded_bytes), step.downloaded_bytes, step.waits,
                     step.allocations);
}

TEST_CASE(
    "the table of docs/cuda.md about copies, waits and allocations of a step is what CUDA on the host counts") {
  for (const bool amp : {false, true})
    for (const bool records : {false, true}) {
      const job::JobSpec job = resnet50(amp);
      Device50 device(job.strategy, records);
      Trainer trainer(job, kFacts, *device, device.alone(), {.feeds = image_form_for(*device)});
      const Batch50 batch;
      const auto step = [&] { trainer.step(batch.view(), 0.1); };
      const auto fetching_step = [&] {
        step();
        trainer.score();
        trainer.loss_scale();
      };
      for (int i = 0; i < 4; ++i) fetching_step();  // with graphs the last two are recorded
      const Counts fetching = counted(fetching_step);
      for (int i = 5; i < 8; ++i) step();  // the host gets ahead of the device
      const Counts running = counted(step);
      fetching_step();
      check_needs_nothing_new(fetching), check_needs_nothing_new(running);
      CHECK(fetching.waits <= 1);
      CHECK(fetching.graph_launches == (records ? 1 : 0));
      CHECK(running.graph_launches == (records ? 1 : 0));
      if (records) CHECK(fetching.kernels + fetching.cudnn + fetching.cublas == 0);
      const std::string name = fmt::format("{}, {}", amp ? "AMP (f16)" : "f32",
                                           records ? "repeated from a CUDA graph" : "op by op");
      check_in_document(fmt::format("| {}, fetches the loss | {} |", name, traffic_of(fetching)));
      check_in_document(fmt::format("| {}, fetches nothing | {} |", name, traffic_of(running)));
      if (records) continue;
      // num_iteration_per_drop_scope
      check_in_document(
          fmt::format("| {}, frees and reallocates the activation memory, fetches the loss | {} |", name,
                      traffic_of(counted(fetching_step))));
    }
}

std::vector<Choice> choices_of_ranks() {
  return {{"the defaults", [](job::StrategySpec&) {}},
          {"`fuse_all_reduce_ops=false`",
           [](job::StrategySpec& strategy) { strategy.fuse_all_reduce_ops = false; }},
          {"`sync_nccl_allreduce=false`",
           [](job::StrategySpec& strategy) { strategy.sync_nccl_allreduce = false; }},
          {"`fuse_all_reduce_ops=false`, `sync_nccl_allreduce=false`",
           [](job::StrategySpec& strategy) {
             strategy.fuse_all_reduce_ops = false;
             strategy.sync_nccl_allreduce = false;
           }},
          {"`fp16_allreduce=true`", [](job::StrategySpec& strategy) { strategy.fp16_allreduce = true; }, 3,
           false},
          {"`sync_batch_norm=true`", [](job::StrategySpec& strategy) { strategy.sync_batch_norm = true; }},
          {"`build_strategy.reduce_strategy=Reduce`", [](job::StrategySpec& strategy) {
             strategy.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
           }}};
}

struct StepOfRanks {
  bool amp = false, records = false, registers = false;
};

// Shows `look` a step of each of two ranks, in its process, which counts it. If `look` throws, the test fails.
void count_of_ranks(const Choice& choice, const StepOfRanks& kind,
                    const std::function<void(int rank, const Counts& step)>& look) {
  testing::ProcessWorld ranks(2, [&](comm::World& world) {
    job::JobSpec job = resnet50(kind.amp);
    choice.set(job.strategy);
    job.strategy = job::settle_strategy(job.strategy, {.all = 2, .of_node = 2, .gpu = true}).strategy;
    Device50 device(job.strategy, kind.records, kind.registers);
    const TrainingCommunicators communicators(job.strategy, world, *device);
    Steps steps(job, *device, communicators.all());
    Counts step;
    for (int i = 0; i < 5; ++i) step = steps.next();  // two are recorded
    if (step.graph_launches != (kind.records ? 1 : 0)) throw std::runtime_error("is the step recorded?");
    if (step.allocations != 0) throw std::runtime_error("a step allocates memory");
    const std::vector<std::string> lines = (*device).choices();
    const bool told = std::ranges::any_of(lines, [](const std::string& line) {
      return line.ends_with(" MB of memory that NCCL may register");
    });
    if (told != kind.registers) throw std::runtime_error("what the device says about registered memory");
    look(world.env.rank, step);
  });
  for (const int rank : {1, 0}) REQUIRE(ranks.wait(rank) == 0);
}

std::string work_of_ranks(const Choice& choice, bool amp, bool records) {
  const TemporaryFolder folder;
  count_of_ranks(choice, {.amp = amp, .records = records}, [&](int rank, const Counts& step) {
    folder.write(std::to_string(rank), fmt::format(" | {} | {} | {}", step.kernels + step.cudnn + step.cublas,
                                                   step.nccl, step.waits));
  });
  return folder.read("0");
}

TEST_CASE("the table of docs/cuda.md about a step of two ranks is what CUDA on the host counts") {
  for (const Choice& choice : choices_of_ranks()) {
    const std::string amp = choice.with_amp ? work_of_ranks(choice, true, false) : " | | |";
    check_in_document("| " + choice.text + work_of_ranks(choice, false, false) + amp + " |");
    if (choice.text != "`sync_nccl_allreduce=false`") continue;
    check_in_document("| " + choice.text + ", repeated from a CUDA graph" +
                      work_of_ranks(choice, false, true) + work_of_ranks(choice, true, true) + " |");
  }
}

TEST_CASE("with FLEETRUN_NCCL_REGISTER=1 all gradients are summed in memory that NCCL has registered") {
  std::vector<Choice> choices = choices_of_ranks();
  // These have collectives of other values, too: statistics and parameters.
  std::erase_if(choices, [](const Choice& choice) {
    return choice.text.starts_with("`sync_batch_norm") || choice.text.ends_with("=Reduce`");
  });
  choices.push_back({"`nccl_comm_num=2`", [](job::StrategySpec& strategy) { strategy.nccl_comm_num = 2; }});
  for (const Choice& choice : choices)
    for (const bool amp : {false, true}) {
      if (amp && !choice.with_amp) continue;
      CAPTURE(choice.text);
      CAPTURE(amp);
      count_of_ranks(choice, {.amp = amp, .registers = true}, [](int, const Counts& step) {
        if (step.registered != step.nccl)
          throw std::runtime_error(
              fmt::format("{} of {} collectives are registered", step.registered, step.nccl));
      });
    }
}

}  // namespace
}  // namespace fleetrun::runtime::step_counts_test
