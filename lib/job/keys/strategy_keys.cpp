#include <limits>

#include "job/keys/job_keys.h"
#include "job/keys/make_key.h"

namespace fleetrun::job {
namespace {

constexpr double kMostCommunicators = 64;  // each has a thread; far above what any network gains from
constexpr double kMostOpsInFlight = 256;   // threads that issue ops; far above the width of any graph of ours
constexpr double kMostScratchMegabytes = 1 << 20;  // a terabyte: more than any host gives to one op

constexpr double kMostScale = std::numeric_limits<float>::max();  // in f32, too
constexpr double kMostSteps = 1 << 24;  // counted in f32, which has no gaps up to there

// FleetX's documents write the fusion switches directly under the strategy.
KeyRules fusion(const std::string& name) { return {.aliases = {"strategy." + name}}; }

Key amp_keys() {
  const Section<AmpSpec> amp{[](JobSpec& spec) -> AmpSpec& { return spec.strategy.amp_configs; }};
  return make_object_key(
      "amp_configs", "settings of mixed precision",
      {
          make_key("init_loss_scaling", amp(&AmpSpec::init_loss_scaling), "initial loss scale",
                   {.range = {.least = 0, .most = kMostScale, .above_least = true}}),
          make_key("incr_every_n_steps", amp(&AmpSpec::incr_every_n_steps),
                   "steps in a row without overflow before the loss scale grows",
                   {.range = Range::between(1, kMostSteps)}),
          make_key("decr_every_n_nan_or_inf", amp(&AmpSpec::decr_every_n_nan_or_inf),
                   "overflows in a row before the loss scale shrinks",
                   {.range = Range::between(1, kMostSteps)}),
          make_key("incr_ratio", amp(&AmpSpec::incr_ratio), "factor by which the loss scale grows",
                   {.range = Range::above(1)}),
          make_key("decr_ratio", amp(&AmpSpec::decr_ratio), "factor by which the loss scale shrinks",
                   {.range = {.least = 0, .most = 1, .above_least = true, .below_most = true}}),
          make_key("use_dynamic_loss_scaling", amp(&AmpSpec::use_dynamic_loss_scaling),
                   "adapts the loss scale during the training"),
          make_key("custom_white_list", amp(&AmpSpec::custom_white_list),
                   "ops that always compute in low precision"),
          make_key("custom_black_list", amp(&AmpSpec::custom_black_list),
                   "ops that never compute in low precision"),
          make_key("custom_black_varnames", amp(&AmpSpec::custom_black_varnames),
                   "values that are never in low precision"),
          make_key("dtype", amp(&AmpSpec::dtype), "low-precision type; auto: bf16 on a CPU, fp16 on CUDA",
                   {.choices = {choice("auto", AmpType::automatic), choice("bf16", AmpType::bf16),
                                choice("fp16", AmpType::fp16)}}),
      });
}

Key build_strategy_keys() {
  using Build = BuildStrategySpec;
  const Section<Build> build{[](JobSpec& spec) -> Build& { return spec.strategy.build_strategy; }};
  return make_object_key(
      "build_strategy", "how to rewrite the graph",
      {
          make_key("enable_sequential_execution", build(&Build::enable_sequential_execution),
                   "runs ops in the order of the program"),
          make_key("fuse_elewise_add_act_ops", build(&Build::fuse_elewise_add_act_ops),
                   "fuses additions with their activations", fusion("fuse_elewise_add_act_ops")),
          make_key("fuse_bn_act_ops", build(&Build::fuse_bn_act_ops),
                   "fuses batch norms with their activations", fusion("fuse_bn_act_ops")),
          make_key("fuse_bn_add_act_ops", build(&Build::fuse_bn_add_act_ops),
                   "fuses batch norms with the addition and activation after them",
                   fusion("fuse_bn_add_act_ops")),
          make_key("fuse_relu_depthwise_conv", build(&Build::fuse_relu_depthwise_conv),
                   "fuses ReLUs with the depthwise convolution after them",
                   fusion("fuse_relu_depthwise_conv")),
          make_key("fuse_broadcast_ops", build(&Build::fuse_broadcast_ops),
                   "fuses the broadcasts of parameters", fusion("fuse_broadcast_ops")),
          make_key("fuse_all_optimizer_ops", build(&Build::fuse_all_optimizer_ops),
                   "fuses the updates of all parameters", fusion("fuse_all_optimizer_ops")),
          make_key("enable_auto_fusion", build(&Build::enable_auto_fusion), "fuses groups of elementwise ops",
                   fusion("enable_auto_fusion")),
          make_key("enable_inplace", build(&Build::enable_inplace),
                   "lets an op write its output into the buffer of an input"),
          make_key("enable_backward_optimizer_op_deps", build(&Build::enable_backward_optimizer_op_deps),
                   "on several ranks: delays updates until the whole backward pass is done"),
          make_key("cache_runtime_context", build(&Build::cache_runtime_context),
                   "looks up the addresses of values once instead of in each step"),
          make_key(
              "reduce_strategy", build(&Build::reduce_strategy),
              "AllReduce: every rank updates every parameter; Reduce: one rank updates it and sends it to the others",
              {.choices = {choice("AllReduce", ReduceStrategy::AllReduce),
                           choice("Reduce", ReduceStrategy::Reduce)}}),
          make_key("gradient_scale_strategy", build(&Build::gradient_scale_strategy),
                   "CoeffNumDevice: the mean of the ranks' gradients; One: their sum",
                   {.choices = {choice("CoeffNumDevice", GradientScale::CoeffNumDevice),
                                choice("One", GradientScale::One)}}),
      },
      {.aliases = {"strategy.BuildStrategy"}});
}

Key execution_strategy_keys() {
  using Execution = ExecutionStrategySpec;
  const Section<Execution> execution{
      [](JobSpec& spec) -> Execution& { return spec.strategy.execution_strategy; }};
  return make_object_key(
      "execution_strategy", "how to run the graph",
      {
          make_key("num_threads", execution(&Execution::num_threads),
                   "ops that run at the same time; 0: 2 on the CPU, 4 on a GPU",
                   {.range = Range::between(0, kMostOpsInFlight), .aliases = {"strategy.thread_num"}}),
          make_key("num_iteration_per_drop_scope", execution(&Execution::num_iteration_per_drop_scope),
                   "steps after which the activation memory is freed; 0: never", {.range = Range::from(0)}),
          make_key("num_iteration_per_run", execution(&Execution::num_iteration_per_run),
                   "steps to run in a row before reading losses, printing lines and saving checkpoints",
                   {.range = Range::from(1)}),
          make_key("use_thread_barrier", execution(&Execution::use_thread_barrier),
                   "for parameter servers only", {.note = "has no effect in collective mode"}),
      });
}

std::vector<Key> communication_keys(const Section<StrategySpec>& strategy) {
  return {
      make_key(
          "sync_nccl_allreduce", strategy(&StrategySpec::sync_nccl_allreduce),
          "true: the thread that starts an all-reduce waits for it; false: a thread of the communicator runs it"),
      make_key("nccl_comm_num", strategy(&StrategySpec::nccl_comm_num),
               "number of communicators, which all-reduces use in turn",
               {.range = Range::between(1, kMostCommunicators)}),
      make_key("use_hierarchical_allreduce", strategy(&StrategySpec::use_hierarchical_allreduce),
               "sums inside groups of ranks first, then between groups",
               {.absent = "measured at the start on several hosts, else false"}),
      make_key("hierarchical_allreduce_inter_nranks",
               strategy(&StrategySpec::hierarchical_allreduce_inter_nranks),
               "ranks per group; 1: the ranks of a node", {.range = Range::from(1)}),
      make_key(
          "hierarchical_allreduce_algorithm", strategy(&StrategySpec::hierarchical_allreduce_algorithm),
          "leader: one rank per group sums between groups; scatter: every rank sums its own slice between "
          "groups; if fleetrun measures at the start, it chooses by the times",
          {.choices = {choice("leader", HierarchicalAlgorithm::leader),
                       choice("scatter", HierarchicalAlgorithm::scatter)}}),
      make_key("sync_batch_norm", strategy(&StrategySpec::sync_batch_norm),
               "computes the statistics of batch norms over all ranks"),
  };
}

std::vector<Key> fusion_keys(const Section<StrategySpec>& strategy) {
  return {
      make_key("fuse_all_reduce_ops", strategy(&StrategySpec::fuse_all_reduce_ops),
               "sums gradients in groups, one all-reduce per group"),
      make_key("fuse_grad_size_in_MB", strategy(&StrategySpec::fuse_grad_size_in_MB),
               "size of a group in MB; 0: one group, below 0: one group per layer",
               {.absent = "32, or FLAGS_fuse_parameter_memory_size"}),
      make_key(
          "fuse_grad_size_in_TFLOPS", strategy(&StrategySpec::fuse_grad_size_in_TFLOPS),
          "a group with more gradients than this takes no further layer (the name is misleading); 1 or less: no limit",
          {.absent = "50, or FLAGS_fuse_parameter_groups_size",
           .aliases = {"strategy._fuse_grad_size_in_TFLOPS"}}),
      make_key(
          "last_comm_group_size_MB", strategy(&StrategySpec::last_comm_group_size_MB),
          "largest size of the last group, in MB; the group has at least one layer, even if that is larger",
          {.range = Range::above(0), .absent = "off"}),
  };
}

std::vector<Key> memory_keys(const Section<StrategySpec>& strategy) {
  const Section<RecomputeSpec> recompute{
      [](JobSpec& spec) -> RecomputeSpec& { return spec.strategy.recompute_configs; }};
  return {make_key("recompute", strategy(&StrategySpec::recompute),
                   "recomputes activations in the backward pass instead of keeping them"),
          make_object_key(
              "recompute_configs", "settings of recomputation",
              {make_key("checkpoints", recompute(&RecomputeSpec::checkpoints),
                        "names of values to keep; none: fleetrun chooses values that keep memory small")})};
}

std::vector<Key> optimizer_strategy_keys(const Section<StrategySpec>& strategy) {
  const Section<GradientMergeSpec> merge{
      [](JobSpec& spec) -> GradientMergeSpec& { return spec.strategy.gradient_merge_configs; }};
  const Section<LarsSpec> lars{[](JobSpec& spec) -> LarsSpec& { return spec.strategy.lars_configs; }};
  const Section<LambSpec> lamb{[](JobSpec& spec) -> LambSpec& { return spec.strategy.lamb_configs; }};
  const std::string excluded =
      "a parameter does not decay if its name contains one of these texts; Fleet's texts batch_norm "
      "(all parameters of batch norms) and .b_0 (biases) work, too";
  return {
      make_key(
          "gradient_merge", strategy(&StrategySpec::gradient_merge),
          "adds up the gradients of k_steps batches before the ranks sum them and update the parameters"),
      make_object_key("gradient_merge_configs", "settings of gradient_merge",
                      {make_key("k_steps", merge(&GradientMergeSpec::k_steps), "batches per update",
                                {.range = Range::between(1, kMostSteps)}),
                       make_key("avg", merge(&GradientMergeSpec::avg),
                                "true: updates by the mean of the batches' gradients; false: by their sum")}),
      make_key("lars", strategy(&StrategySpec::lars), "turns the optimizer momentum into LARS"),
      make_object_key(
          "lars_configs", "settings of lars",
          {make_key("lars_coeff", lars(&LarsSpec::lars_coeff), "trust coefficient",
                    {.range = Range::above(0)}),
           make_key("lars_weight_decay", lars(&LarsSpec::lars_weight_decay),
                    "weight decay; with 0, LARS updates as momentum does", {.range = Range::from(0)}),
           make_key("epsilon", lars(&LarsSpec::epsilon), "small number that is added to the divisor",
                    {.range = Range::from(0)}),
           make_key("exclude_from_weight_decay", lars(&LarsSpec::exclude_from_weight_decay), excluded)}),
      make_key("lamb", strategy(&StrategySpec::lamb), "turns the optimizer adam into LAMB"),
      make_object_key(
          "lamb_configs", "settings of lamb",
          {make_key("lamb_weight_decay", lamb(&LambSpec::lamb_weight_decay), "weight decay",
                    {.range = Range::from(0)}),
           make_key("exclude_from_weight_decay", lamb(&LambSpec::exclude_from_weight_decay), excluded)}),
      make_key("fp16_allreduce", strategy(&StrategySpec::fp16_allreduce),
               "sums gradients in bf16, while everything else stays f32"),
  };
}

// Settings of sharding that PaddlePaddle has for other devices, or for strategies that fleetrun has elsewhere.
std::vector<Key> foreign_sharding_keys(const Section<ShardingSpec>& sharding) {
  const auto without_effect = [](const std::string& why) {
    return KeyRules{.note = "has no effect: " + why};
  };
  const KeyRules only_default = {.support = Support::default_only};
  const std::string segments = "fleetrun sends each parameter by itself, right before its use";
  using Spec = ShardingSpec;
  return {
      make_key("sharding_segment_strategy", sharding(&Spec::sharding_segment_strategy),
               "how PaddlePaddle groups broadcasts", without_effect(segments)),
      make_key("segment_broadcast_MB", sharding(&Spec::segment_broadcast_MB),
               "size of PaddlePaddle's groups of broadcasts, in MB", without_effect(segments)),
      make_key("segment_anchors", sharding(&Spec::segment_anchors),
               "where PaddlePaddle's groups of broadcasts end", without_effect(segments)),
      make_key("pp_allreduce_in_optimize", sharding(&Spec::pp_allreduce_in_optimize),
               "for PaddlePaddle's pipelines",
               without_effect("fleetrun has no pipelines inside of sharding")),
      make_key("use_calc_stream", sharding(&Spec::use_calc_stream), "for PaddlePaddle's streams",
               without_effect("fleetrun chooses the streams itself")),
      make_key("mp_degree", sharding(&Spec::mp_degree),
               "ranks that share one layer; this build accepts only 1", only_default),
      make_key("pp_degree", sharding(&Spec::pp_degree),
               "stages of a pipeline inside of sharding; this build accepts only 1", only_default),
      make_key("gradient_merge_acc_step", sharding(&Spec::gradient_merge_acc_step),
               "batches per update; this build accepts only 1: use strategy.gradient_merge instead",
               only_default),
      make_key("optimize_offload", sharding(&Spec::optimize_offload),
               "keeps optimizer states of a GPU on the host; this build accepts only false", only_default),
      make_key("optimize_cast", sharding(&Spec::optimize_cast),
               "sends parameters in low precision; this build accepts only false", only_default),
      make_key("enable_tuning", sharding(&Spec::enable_tuning),
               "lets PaddlePaddle choose the settings; this build accepts only false", only_default),
      make_key("_dp_as_optimizer_sharding", sharding(&Spec::dp_as_optimizer_sharding),
               "shards optimizer states over the groups, too; this build accepts only false", only_default),
  };
}

std::vector<Key> sharding_keys(const Section<StrategySpec>& strategy) {
  const Section<ShardingSpec> sharding{
      [](JobSpec& spec) -> ShardingSpec& { return spec.strategy.sharding_configs; }};
  using Spec = ShardingSpec;
  std::vector<Key> configs = {
      make_key("stage", sharding(&Spec::stage),
               "what only one rank keeps; 1: optimizer states; 2: also gradients; 3: also parameters",
               {.range = Range::between(1, 3)}),
      make_key("sharding_degree", sharding(&Spec::sharding_degree),
               "consecutive ranks that divide one complete set of states among them",
               {.range = Range::from(1),
                .absent = "ranks / dp_degree if that is set, else all ranks",
                .aliases = {"strategy.sharding_configs.sharding_group_size"}}),
      make_key("dp_degree", sharding(&Spec::dp_degree), "number of sets, between which gradients are summed",
               {.range = Range::from(1), .absent = "ranks / sharding_degree"}),
      make_key(
          "hybrid_dp", sharding(&Spec::hybrid_dp),
          "has no effect by itself: sharding_degree or dp_degree sets the number of sets; with one set, fleetrun takes it as false"),
  };
  for (Key& key : foreign_sharding_keys(sharding)) configs.push_back(std::move(key));
  return {make_key("sharding", strategy(&StrategySpec::sharding),
                   "divides optimizer states, gradients and parameters among the ranks"),
          make_object_key("sharding_configs", "settings of sharding", std::move(configs))};
}

std::vector<Key> local_training_keys(const Section<StrategySpec>& strategy) {
  const Section<LocalSgdSpec> fixed{
      [](JobSpec& spec) -> LocalSgdSpec& { return spec.strategy.localsgd_configs; }};
  const Section<AdaptiveLocalSgdSpec> adaptive{
      [](JobSpec& spec) -> AdaptiveLocalSgdSpec& { return spec.strategy.adaptive_localsgd_configs; }};
  const char* const begin = "step until which the ranks average in every step";
  return {
      make_key("localsgd", strategy(&StrategySpec::localsgd),
               "trains each rank by itself and averages the parameters of the ranks once in k_steps steps"),
      make_object_key(
          "localsgd_configs", "settings of localsgd",
          {make_key("k_steps", fixed(&LocalSgdSpec::k_steps), "steps between two averages of the parameters",
                    {.range = Range::between(1, kMostSteps)}),
           make_key("begin_step", fixed(&LocalSgdSpec::begin_step), begin, {.range = Range::from(1)})}),
      make_key("adaptive_localsgd", strategy(&StrategySpec::adaptive_localsgd),
               "localsgd with a number of steps that follows the loss and the learning rate"),
      make_object_key(
          "adaptive_localsgd_configs", "settings of adaptive_localsgd",
          {make_key(
               "init_k_steps", adaptive(&AdaptiveLocalSgdSpec::init_k_steps),
               "the first number of steps between two averages is the square root of this value, rounded "
               "up, at most 16; later the number follows the loss and the learning rate",
               {.range = Range::between(1, kMostSteps)}),
           make_key("begin_step", adaptive(&AdaptiveLocalSgdSpec::begin_step), begin,
                    {.range = Range::from(1)})}),
  };
}

std::vector<Key> sparse_keys(const Section<StrategySpec>& strategy) {
  const Section<DgcSpec> dgc{[](JobSpec& spec) -> DgcSpec& { return spec.strategy.dgc_configs; }};
  return {
      make_key(
          "dgc", strategy(&StrategySpec::dgc),
          "sends only those elements of each large gradient that are farthest from 0, and keeps the others "
          "for later steps"),
      make_object_key(
          "dgc_configs", "settings of dgc",
          {make_key("rampup_begin_step", dgc(&DgcSpec::rampup_begin_step),
                    "steps that sum whole gradients first", {.range = Range::from(0)}),
           make_key(
               "rampup_step", dgc(&DgcSpec::rampup_step),
               "number of steps that are divided equally among the entries of sparsity, which apply one after the other",
               {.range = Range::between(1, kMostSteps)}),
           make_key(
               "sparsity", dgc(&DgcSpec::sparsity),
               "share of a gradient's elements that is not sent: the entries apply in turn; an empty list means 0.999",
               {.range = {.least = 0, .most = 1, .below_most = true}})}),
      make_key("find_unused_parameters", strategy(&StrategySpec::find_unused_parameters),
               "prints the names of parameters that the loss does not depend on"),
  };
}

std::vector<Key> pipeline_keys(const Section<StrategySpec>& strategy) {
  using Pipeline = PipelineSpec;
  const Section<HybridSpec> hybrid{[](JobSpec& spec) -> HybridSpec& { return spec.strategy.hybrid_configs; }};
  const Section<Pipeline> pipeline{[](JobSpec& spec) -> Pipeline& { return spec.strategy.pipeline_configs; }};
  const std::string usual_steps =
      "data.batch_size / micro_batch_size if that is set, otherwise the smallest divisor of data.batch_size that is at least 4 times the number of stages, or data.batch_size if there is none";
  return {
      make_key(
          "pipeline", strategy(&StrategySpec::pipeline),
          "cuts the network into stages, one per rank of a pipeline; the micro-batches of a batch flow through the stages"),
      make_object_key(
          "pipeline_configs", "settings of pipeline",
          {make_key("micro_batch_size", pipeline(&Pipeline::micro_batch_size), "samples of a micro-batch",
                    {.range = Range::from(1), .absent = "data.batch_size / accumulate_steps"}),
           make_key("accumulate_steps", pipeline(&Pipeline::accumulate_steps), "micro-batches of a batch",
                    {.range = Range::from(1), .absent = usual_steps}),
           make_key(
               "schedule_mode", pipeline(&Pipeline::schedule_mode),
               "1F1B: each stage alternates forward and backward passes; F-then-B: all forward passes come first",
               {.choices = {choice("1F1B", PipelineSchedule::one_forward_one_backward),
                            choice("F-then-B", PipelineSchedule::forwards_then_backwards)}}),
           make_key("p2p_cache_shape", pipeline(&Pipeline::p2p_cache_shape),
                    "for shapes that change between steps",
                    {.note = "has no effect: the shapes of a program never change"}),
           make_key("enable_partial_send_recv", pipeline(&Pipeline::enable_partial_send_recv),
                    "for tensor parallelism only", {.note = "has no effect without tensor parallelism"})}),
      make_object_key(
          "hybrid_configs", "Fleet's degrees of several kinds of parallelism",
          {make_key(
              "pp_degree", hybrid(&HybridSpec::pp_degree),
              "number of stages; each stage has ranks / pp_degree ranks, which train it with different samples",
              {.range = Range::from(1), .absent = "all ranks"})}),
  };
}

std::vector<Key> kernel_keys(const Section<StrategySpec>& strategy) {
  return {
      make_key("cudnn_exhaustive_search", strategy(&StrategySpec::cudnn_exhaustive_search),
               "times the algorithms of each convolution and uses the fastest, also on the CPU"),
      make_key("conv_workspace_size_limit", strategy(&StrategySpec::conv_workspace_size_limit),
               "largest scratch memory of a convolution, in MB",
               {.range = Range::between(0, kMostScratchMegabytes)}),
      make_key(
          "cudnn_batchnorm_spatial_persistent", strategy(&StrategySpec::cudnn_batchnorm_spatial_persistent),
          "uses cuDNN's persistent mode for batch norms, CUDA only", {.note = "has no effect on the CPU"}),
  };
}

}  // namespace

Key strategy_keys() {
  const Section<StrategySpec> strategy{[](JobSpec& spec) -> StrategySpec& { return spec.strategy; }};
  std::vector<Key> members = {
      make_key(
          "auto", strategy(&StrategySpec::auto_tune),
          "times steps with several settings of the strategy for a minute at the first start, and trains with the fastest"),
      make_key("a_sync", strategy(&StrategySpec::a_sync), "for parameter servers only",
               {.note = "has no effect in collective mode"}),
      build_strategy_keys(),
      execution_strategy_keys(),
  };
  for (Key& key : communication_keys(strategy)) members.push_back(std::move(key));
  for (Key& key : fusion_keys(strategy)) members.push_back(std::move(key));
  for (Key& key : memory_keys(strategy)) members.push_back(std::move(key));
  for (Key& key : kernel_keys(strategy)) members.push_back(std::move(key));
  members.push_back(make_key("amp", strategy(&StrategySpec::amp), "computes in mixed precision"));
  members.push_back(amp_keys());
  for (Key& key : optimizer_strategy_keys(strategy)) members.push_back(std::move(key));
  for (Key& key : sharding_keys(strategy)) members.push_back(std::move(key));
  for (Key& key : local_training_keys(strategy)) members.push_back(std::move(key));
  for (Key& key : sparse_keys(strategy)) members.push_back(std::move(key));
  for (Key& key : pipeline_keys(strategy)) members.push_back(std::move(key));
  members.push_back(make_later_key("asp", "Fleet's automatic sparsity; it must be false"));
  return make_object_key("strategy", "Fleet's DistributedStrategy", std::move(members),
                         {.named_by = "strategy_file"});
}

}  // namespace fleetrun::job
