// What a job file says, as plain data with its defaults. docs/job-keys.md describes every key; the table in
// keys/job_keys.cpp binds each key to its field here, for parsing, the JSON Schema and `fleetrun config`.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun::job {

enum class ModelName {
  mlp,
  lenet,
  resnet20,
  resnet18,
  resnet34,
  resnet50,
  resnet101,
  resnet152,
  vgg16,
  mobilenet_v1
};

// What to do with a last layer that does not fit the tensors of model.pretrained.
enum class NewHead { error, automatic };

struct ModelSpec {
  ModelName name = ModelName::mlp;
  std::optional<int> class_dim;                   // from the data set when absent
  std::optional<std::array<int, 3>> input_shape;  // [C,H,W]; from the data set when absent
  std::vector<int> hidden = {512, 256};           // mlp only
  double dropout = 0;                             // before the last layer
  std::optional<std::string> pretrained;
  NewHead new_head = NewHead::error;
  std::vector<std::string> freeze;  // layers, or patterns of names, whose weights stay as they are
};

enum class DataFormat { image_folder, image_list, cifar_bin, idx, synthetic };
enum class Augment { none, crop_flip, random_resized_crop, resize_crop };

struct DataSetSpec {
  DataFormat format = DataFormat::image_folder;
  std::string path;               // image_folder, cifar_bin
  std::string list, root;         // image_list
  std::string images, labels;     // idx
  int samples = 0;                // synthetic
  std::array<int, 3> shape{};     // synthetic [C,H,W]
  int classes = 0;                // synthetic
  std::int64_t seed = 0;          // synthetic
  std::optional<int> image_size;  // side in pixels; that of the images when all agree, else 224
  int channels = 3;
  Augment augment = Augment::none;
  std::vector<double> mean, deviation;  // "mean", "std": one per channel after parsing, in 0..255
};

enum class Uneven { pad, drop };
enum class BadSample { fail, skip };
constexpr const char* kBalanced = "balanced";  // a value of data.sampler and data.class_weights
enum class Sampler { all, balanced };          // each sample once in an epoch, or each class equally often

// How much the samples of each class count in the loss of a training step.
struct ClassWeights {
  bool balanced = false;                  // samples / (classes * samples of the class)
  std::vector<double> by_number;          // one per class
  std::map<std::string, double> by_name;  // of some classes; the others have 1

  bool operator==(const ClassWeights&) const = default;
};

struct DataSpec {
  DataSetSpec train;
  std::optional<DataSetSpec> test;
  std::optional<double> split;  // share of data.train to evaluate on, without data.test
  int batch_size = 32;          // of each rank; train.global_batch replaces it (step_share.h)
  bool shuffle = true;
  Sampler sampler = Sampler::all;
  std::optional<ClassWeights> class_weights;
  Uneven uneven = Uneven::pad;
  int loader_threads = 2;
  int prefetch = 4;  // batches
  BadSample bad_sample = BadSample::fail;
  bool use_dali = false;
};

enum class ScheduleName { constant, piecewise, cosine, polynomial };
enum class ScheduleUnit { step, epoch };

struct ScheduleSpec {  // a plain number for learning_rate is a constant schedule
  ScheduleName name = ScheduleName::constant;
  double base = 0.1;
  int warmup_steps = 0;
  ScheduleUnit unit = ScheduleUnit::step;  // of the boundaries
  std::vector<int> boundaries;
  std::vector<double> values;
  double end = 0;
};

enum class OptimizerName { sgd, momentum, adam, adamw, lars, lamb };
enum class ClipBy { none, value, norm, global_norm };

struct GradientClipSpec {
  ClipBy by = ClipBy::none;
  double limit = 0;  // with any other than none
};

struct OptimizerSpec {
  OptimizerName name = OptimizerName::momentum;
  ScheduleSpec learning_rate;
  double momentum = 0.9;
  bool use_nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double lars_coeff = 0.001;
  double weight_decay = 0;  // L2: g += weight_decay * p; adamw, lars and lamb have their own form
  std::vector<std::string> exclude_from_weight_decay;  // parts of names of parameters
  GradientClipSpec gradient_clip;
  std::map<std::string, double> learning_rate_factors;  // by the beginning of the names of parameters
  double ema_decay = 0;                                 // 0: no averages
  bool ema_evaluate = false;
};

enum class PrintFormat { epoch, worker };
enum class Metric { loss, acc1, acc5 };  // of an evaluation on data.test

struct EarlyStoppingSpec {
  Metric metric = Metric::loss;
  int patience = 3;      // evaluations without improvement
  double min_delta = 0;  // an improvement has to be larger
};

struct TrainSpec {
  std::optional<int> epochs;  // exactly one of the two is set after parsing
  std::optional<int> max_steps;
  std::int64_t seed = 1;
  std::optional<int> threads;  // compute threads of a rank; cores / local ranks when absent
  int log_every = 5;           // steps
  int fetch_every = 1;         // steps
  PrintFormat print_format = PrintFormat::epoch;
  int eval_every = 1;           // epochs, 0 = never
  int check_weights_every = 0;  // steps, 0 = never
  int profile = 0;              // steps, 0 = none
  std::optional<EarlyStoppingSpec> early_stopping;
  std::optional<int> global_batch;  // samples of a step over all ranks, instead of data.batch_size
};

struct CheckpointSpec {
  std::optional<std::string> dir;
  int every_epochs = 1;
  std::optional<int> every_steps;
  int keep = 3;
  std::optional<Metric> keep_best;
  std::string resume = "auto";  // "auto", "never" or a path; absolute after parsing
};

enum class AmpType { automatic, bf16, fp16 };  // "auto", "bf16", "fp16"

struct AmpSpec {
  double init_loss_scaling = 32768;
  int incr_every_n_steps = 1000;
  int decr_every_n_nan_or_inf = 2;
  double incr_ratio = 2.0;
  double decr_ratio = 0.8;
  bool use_dynamic_loss_scaling = true;
  std::vector<std::string> custom_white_list, custom_black_list, custom_black_varnames;
  AmpType dtype = AmpType::automatic;
};

struct RecomputeSpec {
  std::vector<std::string> checkpoints;  // names of values; none: chosen by what they take
};

struct GradientMergeSpec {
  int k_steps = 1;
  bool avg = true;
};

enum class PipelineSchedule { one_forward_one_backward, forwards_then_backwards };  // "1F1B", "F-then-B"

struct PipelineSpec {
  std::optional<int> micro_batch_size, accumulate_steps;  // see settle_pipeline.h
  PipelineSchedule schedule_mode = PipelineSchedule::one_forward_one_backward;
  bool p2p_cache_shape = true;
  bool enable_partial_send_recv = true;
};

struct HybridSpec {
  std::optional<int> pp_degree;  // stages; absent: all ranks
};

struct LarsSpec {
  double lars_coeff = 0.001;
  double lars_weight_decay = 0.0005;
  double epsilon = 0;
  std::vector<std::string> exclude_from_weight_decay;
};

struct LambSpec {
  double lamb_weight_decay = 0.01;
  std::vector<std::string> exclude_from_weight_decay;
};

struct ShardingSpec {
  int stage = 1;                       // 1: optimizer states; 2: also gradients; 3: also parameters
  std::optional<int> sharding_degree;  // ranks that share one set of them; absent: all
  std::optional<int> dp_degree;        // sets; absent: as many as there are
  bool hybrid_dp = false;              // wants more than one set
  // Accepted, but without effect.
  std::string sharding_segment_strategy = "segment_broadcast_MB";
  double segment_broadcast_MB = 32;
  std::vector<std::string> segment_anchors;
  bool pp_allreduce_in_optimize = false, use_calc_stream = false;
  // Only these values are accepted.
  int mp_degree = 1, pp_degree = 1, gradient_merge_acc_step = 1;
  bool optimize_offload = false, optimize_cast = false, enable_tuning = false;
  bool dp_as_optimizer_sharding = false;
};

struct LocalSgdSpec {
  int k_steps = 1;     // from average to average
  int begin_step = 1;  // until this step, the parameters are averaged in every step
};

struct AdaptiveLocalSgdSpec {
  int init_k_steps = 1;
  int begin_step = 1;
};

const std::vector<double> kUsualSparsity = {
    0.999};  // where strategy.dgc_configs has none, as in PaddlePaddle

struct DgcSpec {
  int rampup_begin_step = 0;     // steps before the first sparse one
  int rampup_step = 1;           // steps in which the entries of sparsity follow each other
  std::vector<double> sparsity;  // parts of a gradient that stay behind; none: kUsualSparsity
};

enum class ReduceStrategy { AllReduce, Reduce };
enum class GradientScale { CoeffNumDevice, One };
enum class HierarchicalAlgorithm { leader, scatter };

struct BuildStrategySpec {
  bool enable_sequential_execution = false;
  bool fuse_elewise_add_act_ops = false;
  bool fuse_bn_act_ops = false;
  bool fuse_bn_add_act_ops = true;
  bool fuse_relu_depthwise_conv = false;
  bool fuse_broadcast_ops = false;
  bool fuse_all_optimizer_ops = false;
  bool enable_auto_fusion = false;
  bool enable_inplace = true;
  bool enable_backward_optimizer_op_deps = true;
  bool cache_runtime_context = false;
  ReduceStrategy reduce_strategy = ReduceStrategy::AllReduce;
  GradientScale gradient_scale_strategy = GradientScale::CoeffNumDevice;
};

struct ExecutionStrategySpec {
  int num_threads = 1;  // ops in flight
  int num_iteration_per_drop_scope = 10;
  int num_iteration_per_run = 1;
  bool use_thread_barrier = false;
};

constexpr double kFusedMegabytes = 32;
constexpr double kFusedGradients = 50;  // FleetX's table says 20, the code and the published logs 50

struct StrategySpec {
  bool auto_tune = false;  // key "auto"
  bool a_sync = true;
  bool sync_nccl_allreduce = true;
  int nccl_comm_num = 1;
  std::optional<bool> use_hierarchical_allreduce;  // absent: measured at the start on several hosts
  int hierarchical_allreduce_inter_nranks = 1;
  HierarchicalAlgorithm hierarchical_allreduce_algorithm = HierarchicalAlgorithm::leader;
  bool sync_batch_norm = false;
  bool fuse_all_reduce_ops = true;
  std::optional<double> fuse_grad_size_in_MB;  // absent: FLAGS_fuse_parameter_memory_size, or kFusedMegabytes
  std::optional<double> fuse_grad_size_in_TFLOPS;  // a count of gradients, whatever its name says; absent:
                                                   // FLAGS_fuse_parameter_groups_size, or kFusedGradients
  std::optional<double> last_comm_group_size_MB;
  bool cudnn_exhaustive_search = true;
  int conv_workspace_size_limit = 4000;  // MB
  bool cudnn_batchnorm_spatial_persistent = true;
  bool amp = false;
  bool recompute = false;
  bool gradient_merge = false;
  bool lars = false;  // of momentum
  bool lamb = false;  // of adam
  bool fp16_allreduce = false;
  bool sharding = false;
  bool localsgd = false;
  bool adaptive_localsgd = false;
  bool dgc = false;
  bool find_unused_parameters = false;
  bool pipeline = false;
  AmpSpec amp_configs;
  RecomputeSpec recompute_configs;
  GradientMergeSpec gradient_merge_configs;
  LarsSpec lars_configs;
  LambSpec lamb_configs;
  ShardingSpec sharding_configs;
  LocalSgdSpec localsgd_configs;
  AdaptiveLocalSgdSpec adaptive_localsgd_configs;
  DgcSpec dgc_configs;
  PipelineSpec pipeline_configs;
  HybridSpec hybrid_configs;
  BuildStrategySpec build_strategy;
  ExecutionStrategySpec execution_strategy;
};

enum class DeviceChoice { automatic, cpu, cuda };  // "auto", "cpu", "cuda"

struct OutputSpec {
  std::string dir = "output";  // made absolute: beside the job file when relative
  bool tensorboard = false;
  std::optional<std::array<int, 2>> trace;  // [first, last] step
};

struct JobSpec {
  std::string file;  // the job file, as given
  ModelSpec model;
  DataSpec data;
  OptimizerSpec optimizer;
  TrainSpec train;
  CheckpointSpec checkpoint;
  StrategySpec strategy;
  std::optional<std::string> strategy_file;
  std::map<std::string, std::string> env;  // exported to the workers
  DeviceChoice device = DeviceChoice::automatic;
  OutputSpec output;
};

}  // namespace fleetrun::job
