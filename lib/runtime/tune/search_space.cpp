#include "runtime/tune/search_space.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetrun::runtime {
namespace {

using Settings = std::vector<std::string>;

constexpr double kBytesOfMegabyte = 1 << 20;
constexpr int kTenths = 10;
constexpr double kLeastGroupMegabytes = 0.01;  // smaller groups cost a message per gradient

std::string build(const std::string& setting) { return "strategy.build_strategy." + setting; }
std::string run(const std::string& setting) { return "strategy.execution_strategy." + setting; }
std::string top(const std::string& setting) { return "strategy." + setting; }

Settings sorted(Settings settings) {
  std::sort(settings.begin(), settings.end());
  return settings;
}

// What adds itself to a space, unless the job has fixed one of its keys.
class Space {
 public:
  explicit Space(const SpaceFacts& facts) : facts_(facts) {}

  void add(const std::string& name, const Settings& settings, Advice advice = Advice::none) {
    if (std::any_of(settings.begin(), settings.end(), [&](const auto& each) { return is_fixed(each); }))
      return;
    candidates_.push_back({name, sorted(settings), advice});
  }

  // Those of several settings that the job leaves open.
  void add_open(const std::string& name, Settings settings, Advice advice) {
    std::erase_if(settings, [&](const std::string& setting) { return is_fixed(setting); });
    if (settings.size() > 1) candidates_.push_back({name, sorted(settings), advice});
  }

  std::vector<Candidate> take() { return std::move(candidates_); }

 private:
  bool is_fixed(const std::string& setting) const { return facts_.fixed.count(key_of(setting)) != 0; }

  const SpaceFacts& facts_;
  std::vector<Candidate> candidates_;
};

void add_fusions(Space& space) {
  space.add_open("all fusions",
                 {build("fuse_bn_act_ops=true"), build("fuse_elewise_add_act_ops=true"),
                  build("fuse_all_optimizer_ops=true"), build("enable_auto_fusion=true"),
                  build("cache_runtime_context=true")},
                 Advice::fuse);
  space.add("fuse_bn_act_ops", {build("fuse_bn_act_ops=true")}, Advice::fuse);
  space.add("fuse_all_optimizer_ops", {build("fuse_all_optimizer_ops=true")}, Advice::fuse);
  space.add("enable_auto_fusion", {build("enable_auto_fusion=true")}, Advice::fuse);
  space.add("fuse_elewise_add_act_ops", {build("fuse_elewise_add_act_ops=true")}, Advice::fuse);
  space.add("fuse_relu_depthwise_conv", {build("fuse_relu_depthwise_conv=true")}, Advice::fuse);
  space.add("cache_runtime_context", {build("cache_runtime_context=true")});
}

std::string megabytes(double value) { return fmt::format("{:.3g}", std::max(value, kLeastGroupMegabytes)); }

// Of gradients that several ranks sum.
void add_sums(const SpaceFacts& facts, Space& space) {
  const std::string tenth = megabytes(static_cast<double>(facts.gradient_bytes) / kBytesOfMegabyte / kTenths);
  space.add("groups of a tenth of all gradients",
            {top("fuse_grad_size_in_MB=" + tenth), top("fuse_grad_size_in_TFLOPS=0")}, Advice::tenth);
  space.add("all gradients in one group", {top("fuse_grad_size_in_MB=0"), top("fuse_grad_size_in_TFLOPS=0")});
  space.add("sync_nccl_allreduce false", {top("sync_nccl_allreduce=false")});
  space.add("2 communicators and num_threads 3", {top("nccl_comm_num=2"), run("num_threads=3")},
            Advice::two_communicators);
  space.add("nccl_comm_num 2", {top("nccl_comm_num=2")});
  space.add("updates as soon as their gradient is summed",
            {build("enable_backward_optimizer_op_deps=false")});
  space.add("last group of 1 MB", {top("last_comm_group_size_MB=1")});
  space.add("groups of 16 MB", {top("fuse_grad_size_in_MB=16")});
  space.add("reduce_strategy Reduce", {build("reduce_strategy=Reduce"), build("fuse_broadcast_ops=true")});
}

// The ranks of a node are a group; on one host, half of the ranks are.
void add_groups(const SpaceFacts& facts, Space& space) {
  const int group = facts.nodes > 1 ? facts.ranks_per_node : facts.ranks / 2;
  if (group < 2 || facts.ranks % group != 0) return;
  for (const char* algorithm : {"leader", "scatter"})
    space.add(fmt::format("groups of {} ranks by {}", group, algorithm),
              {top("use_hierarchical_allreduce=true"),
               top(fmt::format("hierarchical_allreduce_inter_nranks={}", group)),
               top(fmt::format("hierarchical_allreduce_algorithm={}", algorithm))});
}

void add_execution(const SpaceFacts& facts, Space& space) {
  space.add("num_threads 2", {run("num_threads=2")}, Advice::threads_of_devices);
  space.add("num_threads 3", {run("num_threads=3")}, Advice::threads_of_devices);
  space.add("num_threads 4", {run("num_threads=4")}, Advice::threads_of_devices);
  space.add("activation memory kept for 30 steps", {run("num_iteration_per_drop_scope=30")},
            Advice::drop_less_often);
  space.add("no search for algorithms", {top("cudnn_exhaustive_search=false")});
  if (facts.ranks > 1) space.add("fuse_all_reduce_ops false", {top("fuse_all_reduce_ops=false")});
}

void add_other_numbers(const SpaceFacts& facts, Space& space) {
  if (!facts.amp) return;
  if (facts.narrow) space.add("amp", {top("amp=true")});
  if (facts.ranks > 1) space.add("fp16_allreduce", {top("fp16_allreduce=true")});
}

// Either key says how large a batch is, and takes the place of the other.
bool sets_batch(const SpaceFacts& facts) {
  return facts.fixed.contains("data.batch_size") || facts.fixed.contains("train.global_batch");
}

// A larger batch costs memory, and recompute saves memory.
void add_batches(const SpaceFacts& facts, Space& space) {
  if (!facts.memory) return;
  const std::vector<int> factors = sets_batch(facts) ? std::vector<int>{} : std::vector<int>{2, 4};
  for (const int factor : factors) {
    const std::string batch = fmt::format("data.batch_size={}", factor * facts.batch);
    space.add(fmt::format("batch size {}", factor * facts.batch), {batch}, Advice::bigger_batch);
    space.add(fmt::format("batch size {} with recompute", factor * facts.batch),
              {batch, top("recompute=true")}, Advice::bigger_batch);
  }
  space.add("recompute", {top("recompute=true")});
}

}  // namespace

std::vector<Candidate> search_space(const SpaceFacts& facts) {
  Space space(facts);
  add_other_numbers(facts, space);
  add_batches(facts, space);
  add_fusions(space);
  if (facts.ranks > 1) add_sums(facts, space);
  if (facts.ranks > 1) add_groups(facts, space);
  add_execution(facts, space);
  return space.take();
}

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

std::optional<Candidate> combine(const Candidate& first, const Candidate& second) {
  std::map<std::string, std::string> by_key;
  for (const std::string& setting : first.settings) by_key[key_of(setting)] = setting;
  for (const std::string& setting : second.settings)
    if (const auto [known, is_new] = by_key.emplace(key_of(setting), setting);
        !is_new && known->second != setting)
      return std::nullopt;
  if (by_key.size() == first.settings.size() || by_key.size() == second.settings.size()) return std::nullopt;
  Candidate both = {.name = first.name + " + " + second.name, .settings = {}};
  for (const auto& [key, setting] : by_key) both.settings.push_back(setting);
  return both;
}

Candidate without(const Candidate& candidate, std::size_t left_out) {
  Candidate rest = {.name = "without " + candidate.settings.at(left_out), .settings = candidate.settings};
  rest.settings.erase(rest.settings.begin() + static_cast<std::ptrdiff_t>(left_out));
  return rest;
}

}  // namespace fleetrun::runtime
