#!/usr/bin/env python3
"""Strategy files of PaddlePaddle, and what it makes of fleetrun's. Needs the packages paddle and protobuf.

usage: strategy_files.py write FOLDER             writes tests/job/strategies anew: paddle_3/ by the installed PaddlePaddle, paddle_2/ by
                                                  protobuf from the schema of PaddlePaddle 2.0
       strategy_files.py check FLEETRUN FOLDER    compares FOLDER with what `write` writes; lets fleetrun write each file and some jobs again,
                                                  and loads the result in PaddlePaddle
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("GLOG_minloglevel", "2")
import paddle
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from paddle.distributed import fleet

SCHEMAS = Path(__file__).resolve().parents[2] / "lib" / "prototxt" / "schemas"
FIELD = re.compile(r'(optional|repeated) (\w+) (\w+) = (\d+)(?: \[default = (.*)\])?;')
SCALARS = ("bool", "int32", "uint32", "uint64", "float", "double", "string")


def read_schema(path):
    """DistributedStrategy as a class, from a .proto file that has one field a line."""
    file = descriptor_pb2.FileDescriptorProto(name=path.name, package="paddle.fleet")
    text = path.read_text(encoding="utf-8")
    enums = re.findall(r"^enum (\w+) \{(.*?)^\}", text, re.M | re.S)
    for name, body in enums:
        enum = file.enum_type.add(name=name)
        for value, number in re.findall(r"(\w+) = (\d+);", body):
            enum.value.add(name=value, number=int(number))
    for name, body in re.findall(r"^message (\w+) \{(.*?)^\}", text, re.M | re.S):
        message = file.message_type.add(name=name)
        for label, kind, field_name, number, default in FIELD.findall(body):
            field = message.field.add(name=field_name, number=int(number))
            field.label = field.LABEL_REPEATED if label == "repeated" else field.LABEL_OPTIONAL
            if kind in SCALARS:
                field.type = getattr(field, "TYPE_" + kind.upper())
            else:
                field.type = field.TYPE_ENUM if kind in dict(enums) else field.TYPE_MESSAGE
                field.type_name = ".paddle.fleet." + kind
            if default:
                field.default_value = default.strip('"')
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("paddle.fleet.DistributedStrategy"))


# ---- Values for fields.

def other_value(field, count):
    """A value that is not the field's default."""
    if field.type == field.TYPE_ENUM:
        return field.enum_type.values[-1].number
    if field.type == field.TYPE_STRING:
        return f"{field.name} é \"{count}\"\n\t'\\"
    if field.type == field.TYPE_BOOL:
        return field.is_repeated or not field.default_value
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return [0.1, 1e-9, 123456.789, 1e20, -2.5][count % 5]
    return [7, 2147483647, 1000][count % 3] if field.type != field.TYPE_UINT64 else 2**64 - 1 - count


def set_every_field(message, value_of, count=0):
    """Sets all fields, also of the messages inside."""
    for field in message.DESCRIPTOR.fields:
        count += 1
        if field.type == field.TYPE_MESSAGE:
            for i in range(2 if field.is_repeated else 1):
                below = getattr(message, field.name).add() if field.is_repeated else getattr(message, field.name)
                below.SetInParent()
                set_every_field(below, value_of, count + i)
        elif field.is_repeated:
            getattr(message, field.name).extend(other_value(field, count + i) for i in range(3))
        else:
            setattr(message, field.name, value_of(field, count))


def default_value(field, _):
    return field.default_value


# ---- The files of PaddlePaddle 3, by its own setters.

def published_example(strategy):
    """The lines of FleetX's published example, except those that PaddlePaddle 3 no longer accepts: enable_sequential_execution and
    execution_strategy."""
    strategy.sync_nccl_allreduce = True
    strategy.nccl_comm_num = 2
    strategy.fuse_all_reduce_ops = True
    build_strategy = paddle.static.BuildStrategy()
    build_strategy.fuse_elewise_add_act_ops = True
    build_strategy.fuse_bn_act_ops = True
    build_strategy.enable_auto_fusion = True
    build_strategy.fuse_all_optimizer_ops = True
    strategy.build_strategy = build_strategy
    strategy.amp = True
    strategy.amp_configs = {
        "init_loss_scaling": 128, "decr_every_n_nan_or_inf": 2, "incr_every_n_steps": 1000, "incr_ratio": 2.0,
        "use_dynamic_loss_scaling": True, "decr_ratio": 0.5, "custom_white_list": [], "custom_black_list": []}


def scalars(strategy):
    strategy.hierarchical_allreduce_inter_nranks = 8
    strategy.use_hierarchical_allreduce = True
    strategy.sync_batch_norm = True
    strategy.fuse_grad_size_in_MB = 16
    strategy._fuse_grad_size_in_TFLOPS = 0.1
    strategy.last_comm_group_size_MB = 2.5
    strategy.cudnn_exhaustive_search = True
    strategy.conv_workspace_size_limit = 4000
    strategy.cudnn_batchnorm_spatial_persistent = True
    strategy.find_unused_parameters = True
    strategy.without_graph_optimization = False


def with_switch(name, **configs):
    def set_both(strategy):
        setattr(strategy, name, True)
        setattr(strategy, name + "_configs", configs)
    return set_both


def parameter_servers(strategy):
    strategy.a_sync = True
    strategy.a_sync_configs = {"k_steps": 100, "send_queue_size": 32, "independent_recv_thread": True}
    strategy.trainer_desc_configs = {"dump_fields_path": "out", "dump_fields": ["a", "b"]}
    strategy.fs_client_param = {"uri": "hdfs://x", "user": "u", "passwd": "p", "hadoop_bin": "/usr/bin/hadoop"}
    table = strategy.strategy.downpour_table_param.add(table_id=2**63 + 1, table_name="t")
    table.accessor.embed_sgd_param.adam.learning_rate = 0.001
    table.accessor.table_accessor_save_param.add(param=1, converter="c")
    strategy.strategy.downpour_table_param.add(type=1, shard_merge_rate=0.5)


def hybrid(strategy):
    strategy.hybrid_configs = {
        "dp_degree": 2, "mp_degree": 4, "mp_configs": {"sync_mode": "average", "sync_grad": True},
        "pp_configs": {"delay_scale_loss": True}}
    strategy.strategy.hybrid_configs.sharding_configs.comm_buffer_size_MB = -1  # whose setter does not work in 3.3.1


def gradient_scale(strategy):
    strategy.gradient_scale_configs = {"scale_strategy": "sum"}


def odd_numbers(strategy):
    strategy.lars_configs = {"lars_coeff": 1.1754943508222875e-38, "lars_weight_decay": 3.4028234663852886e38, "epsilon": float("inf")}
    strategy.dgc_configs = {"sparsity": [0.1, 1 / 3, 16777216.0, 1e-7]}
    strategy.localsgd_configs = {"k_steps": 2147483647, "begin_step": -2147483648}


def build_strategy_alone(strategy):
    strategy.build_strategy = paddle.static.BuildStrategy()


PADDLE_3 = {
    "nothing": lambda strategy: None,
    "published_example": published_example,
    "scalars": scalars,
    "build_strategy": build_strategy_alone,
    "amp": with_switch("amp", custom_white_list=["conv2d", "matmul"], custom_black_list=["softmax"],
                       custom_black_varnames=["x"], init_loss_scaling=1024.0),
    "amp_pure": with_switch("amp", use_pure_fp16=True, use_fp16_guard=False),
    "recompute": with_switch("recompute", checkpoints=["x", "y.z"], checkpoint_shape=[1, 2], enable_offload=True),
    "localsgd": with_switch("localsgd", k_steps=4, begin_step=30),
    "adaptive_localsgd": with_switch("adaptive_localsgd", init_k_steps=2, begin_step=10),
    "gradient_merge": with_switch("gradient_merge", k_steps=4, avg=False),
    "dgc": with_switch("dgc", rampup_begin_step=2504, rampup_step=3756, sparsity=[0.984375, 0.996, 0.999]),
    "lars": with_switch("lars", lars_coeff=0.01, lars_weight_decay=0.0005, exclude_from_weight_decay=["batch_norm", ".b_0"]),
    "lamb": with_switch("lamb", lamb_weight_decay=0.02, exclude_from_weight_decay=[]),
    "sharding": with_switch("sharding", sharding_segment_strategy="segment_anchors", segment_anchors=["a", "b"], sharding_degree=4),
    "pipeline": with_switch("pipeline", accumulate_steps=4, micro_batch_size=2, schedule_mode="F-then-B"),
    "tensor_parallel": with_switch("tensor_parallel", tensor_parallel_degree=4, tensor_init_seed=123),
    "qat": with_switch("qat", weight_bits=4, not_quant_pattern=["skip"]),
    "hybrid": hybrid,
    "gradient_scale": gradient_scale,
    "parameter_servers": parameter_servers,
    "odd_numbers": odd_numbers,
}


def write_paddle_3(folder):
    for name, fill in PADDLE_3.items():
        strategy = fleet.DistributedStrategy()
        fill(strategy)
        strategy.save_to_prototxt(str(folder / f"{name}.prototxt"))
    for name, value_of in (("all_defaults", default_value), ("every_field", other_value)):
        strategy = fleet.DistributedStrategy()
        set_every_field(strategy.strategy, value_of)
        strategy.save_to_prototxt(str(folder / f"{name}.prototxt"))


# ---- The files of PaddlePaddle 2.0.

PADDLE_2 = {
    "published_example": "sync_nccl_allreduce: true nccl_comm_num: 2 fuse_all_reduce_ops: true amp: true "
                         "amp_configs { init_loss_scaling: 128 incr_every_n_steps: 1000 decr_every_n_nan_or_inf: 2 incr_ratio: 2 "
                         "decr_ratio: 0.5 use_dynamic_loss_scaling: true } "
                         "build_strategy { enable_sequential_execution: true fuse_elewise_add_act_ops: true fuse_bn_act_ops: true "
                         "fuse_relu_depthwise_conv: false fuse_broadcast_ops: true fuse_all_optimizer_ops: true enable_inplace: true "
                         "enable_backward_optimizer_op_deps: true cache_runtime_context: false fuse_bn_add_act_ops: true "
                         "enable_auto_fusion: true enable_addto: false } "
                         "execution_strategy { num_threads: 3 num_iteration_per_drop_scope: 100 num_iteration_per_run: 1 "
                         "use_thread_barrier: false }",
    "sharding": "sharding: true sharding_configs { fuse_broadcast_MB: 16.5 hybrid_dp: true sharding_group_size: 4 }",
    "pipeline": "pipeline: true pipeline_configs { micro_batch: 12 }",
    "execution": "execution_strategy { num_threads: 0 use_thread_barrier: true }",
    "sequential": "build_strategy { enable_sequential_execution: true }",
    "mode": "mode: PS a_sync: false a_sync_configs { k_steps: 0 heter_worker_device_guard: 'gpu' } execution_strategy { }",
    "strategies": "recompute: true localsgd: true dgc: true gradient_merge: true lars: true lamb: true adaptive_localsgd: true "
                  "recompute_configs { checkpoints: ['a', 'b'] } localsgd_configs { k_steps: 3 } dgc_configs { sparsity: 0.999 } "
                  "gradient_merge_configs { avg: false } lars_configs { lars_coeff: 1e-10 exclude_from_weight_decay: '.b_0' } "
                  "lamb_configs { exclude_from_weight_decay: 'x' } adaptive_localsgd_configs { begin_step: 9 } "
                  "execution_strategy { num_iteration_per_run: 2 }",
}


def write_paddle_2(folder):
    strategy_class = read_schema(SCHEMAS / "paddle_2.proto")
    for name, text in PADDLE_2.items():
        message = text_format.Parse(text, strategy_class())
        (folder / f"{name}.prototxt").write_text(text_format.MessageToString(message, as_utf8=True), encoding="utf-8")
    for name, value_of in (("all_defaults", default_value), ("every_field", other_value)):
        message = strategy_class()
        set_every_field(message, value_of)
        (folder / f"{name}.prototxt").write_text(text_format.MessageToString(message, as_utf8=True), encoding="utf-8")


def write(folder):
    for name, write_files in (("paddle_3", write_paddle_3), ("paddle_2", write_paddle_2)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        write_files(folder / name)
    (folder / "VERSION").write_text(f"paddle {paddle.__version__}\n", encoding="utf-8")


# ---- Checks.

JOB = {"model": {"name": "mlp"},
       "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 8, 8], "classes": 4}}}

# Keys of a job's strategy, and the fields that PaddlePaddle has to find. A third value is the job's optimizer.
JOBS = [
    ({}, {}),
    ({"amp": True}, {"amp": True}),
    ({"amp": True, "amp_configs": {"decr_ratio": 0.3, "custom_white_list": ["a", "é'"]}},
     {"amp": True, "amp_configs": {"decr_ratio": 0.3, "custom_white_list": ["a", "é'"]}}),
    ({"nccl_comm_num": 3, "sync_nccl_allreduce": False}, {"nccl_comm_num": 3, "sync_nccl_allreduce": False}),
    ({"fuse_grad_size_in_MB": 16, "fuse_grad_size_in_TFLOPS": 20}, {"fuse_grad_size_in_MB": 16, "fuse_grad_size_in_TFLOPS": 20}),
    ({"last_comm_group_size_MB": 0.25}, {"last_comm_group_size_MB": 0.25}),
    ({"use_hierarchical_allreduce": True, "hierarchical_allreduce_inter_nranks": 4},
     {"use_hierarchical_allreduce": True, "hierarchical_allreduce_inter_nranks": 4}),
    ({"sync_batch_norm": True}, {"sync_batch_norm": True}),
    ({"recompute": True, "recompute_configs": {"checkpoints": ["a"]}}, {"recompute": True, "recompute_configs": {"checkpoints": ["a"]}}),
    ({"cudnn_exhaustive_search": False, "conv_workspace_size_limit": 512}, {"cudnn_exhaustive_search": False, "conv_workspace_size_limit": 512}),
    ({"build_strategy": {"reduce_strategy": "Reduce", "fuse_broadcast_ops": True}},
     {"build_strategy": {"reduce_strategy": 1, "fuse_broadcast_ops": True, "enable_inplace": True, "fuse_gemm_epilogue": False}}),
    ({"build_strategy": {"gradient_scale_strategy": "One"}}, {"gradient_scale_configs": {"scale_strategy": "sum"}}),
    ({"build_strategy": {"fuse_elewise_add_act_ops": True, "fuse_bn_act_ops": True, "enable_auto_fusion": True}},
     {"build_strategy": {"fuse_elewise_add_act_ops": True, "fuse_bn_act_ops": True, "enable_auto_fusion": True, "fuse_all_optimizer_ops": False}}),
    ({"build_strategy": {"fuse_all_optimizer_ops": True, "enable_inplace": False}},
     {"build_strategy": {"fuse_all_optimizer_ops": True, "enable_inplace": False}}),
    ({"fuse_all_reduce_ops": False}, {"fuse_all_reduce_ops": False}),
    ({"find_unused_parameters": True}, {"find_unused_parameters": True}),
    ({"fp16_allreduce": True}, {"fp16_allreduce": True}),
    ({"gradient_merge": True, "gradient_merge_configs": {"k_steps": 4}},
     {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 4, "avg": True}}),
    ({"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2, "avg": False}, "fp16_allreduce": True},
     {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2, "avg": False}, "fp16_allreduce": True}),
    ({"lars": True, "lars_configs": {"lars_coeff": 0.01, "lars_weight_decay": 0.0005, "exclude_from_weight_decay": ["batch_norm", ".b_0"]}},
     {"lars": True, "lars_configs": {"lars_coeff": 0.01, "lars_weight_decay": 0.0005, "exclude_from_weight_decay": ["batch_norm", ".b_0"]}}),
    ({"lamb": True, "lamb_configs": {"lamb_weight_decay": 0.02, "exclude_from_weight_decay": [".b_0"]}},
     {"lamb": True, "lamb_configs": {"lamb_weight_decay": 0.02, "exclude_from_weight_decay": [".b_0"]}}, {"name": "adam"}),
    ({"localsgd": True, "localsgd_configs": {"k_steps": 4, "begin_step": 30}},
     {"localsgd": True, "localsgd_configs": {"k_steps": 4, "begin_step": 30}}),
    ({"adaptive_localsgd": True, "adaptive_localsgd_configs": {"init_k_steps": 2, "begin_step": 10}},
     {"adaptive_localsgd": True, "adaptive_localsgd_configs": {"init_k_steps": 2, "begin_step": 10}}),
    ({"dgc": True, "dgc_configs": {"rampup_begin_step": 2504, "rampup_step": 3756, "sparsity": [0.984375, 0.996, 0.999]}},
     {"dgc": True, "dgc_configs": {"rampup_begin_step": 2504, "rampup_step": 3756, "sparsity": [0.984375, 0.996, 0.999]}}),
    ({"sharding": True}, {"sharding": True, "sharding_configs": {"stage": 1}}),
    ({"sharding": True, "sharding_configs": {"stage": 2, "sharding_degree": 2}},
     {"sharding": True, "sharding_configs": {"stage": 2, "sharding_degree": 2}}),
    ({"sharding": True, "sharding_configs": {"stage": 3}, "recompute": True, "recompute_configs": {"checkpoints": ["a"]}},
     {"sharding": True, "sharding_configs": {"stage": 3}, "recompute": True, "recompute_configs": {"checkpoints": ["a"]}}),
    ({"pipeline": True, "pipeline_configs": {"accumulate_steps": 4}},
     {"pipeline": True, "pipeline_configs": {"accumulate_steps": 4, "schedule_mode": "1F1B"}}),
    ({"pipeline": True, "pipeline_configs": {"micro_batch_size": 8, "accumulate_steps": 4, "schedule_mode": "F-then-B"},
      "hybrid_configs": {"pp_degree": 2}},
     {"pipeline": True, "pipeline_configs": {"micro_batch_size": 8, "accumulate_steps": 4, "schedule_mode": "F-then-B"},
      "hybrid_configs": {"pp_degree": 2}}),
    ({"amp": True, "recompute": True, "lars": True, "gradient_merge": True, "gradient_merge_configs": {"k_steps": 4}},
     {"amp": True, "recompute": True, "lars": True, "gradient_merge": True, "gradient_merge_configs": {"k_steps": 4}}),
]


def load_in_paddle(path):
    strategy = fleet.DistributedStrategy()
    strategy.load_from_prototxt(str(path))
    return strategy.strategy


def contains(message, fields):
    """Whether the message has these values in the fields of this tree, and no other top-level field."""
    for name, wanted in fields.items():
        found = getattr(message, name)
        if isinstance(wanted, dict):
            if not all(contains_value(getattr(found, below), value) for below, value in wanted.items()):
                return False
        elif not contains_value(found, wanted):
            return False
    return {field.name for field, _ in message.ListFields()} <= set(fields) | {"build_strategy"}


def contains_value(found, wanted):
    """Floats are compared as f32, which is what the fields have."""
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(contains_value, found, wanted))
    return found == struct.unpack("f", struct.pack("f", wanted))[0] if isinstance(wanted, float) else found == wanted


class Check:
    """Counts what was compared, and what differs."""

    def __init__(self, fleetrun, folder):
        self.fleetrun, self.folder = fleetrun, folder
        self.files = self.jobs = 0
        self.failures = []

    def expect(self, good, words):
        if not good:
            self.failures.append(words)

    def save(self, *words):
        """What fleetrun writes for a file or a job."""
        with tempfile.TemporaryDirectory() as work:
            out = Path(work) / "out.prototxt"
            run = subprocess.run([self.fleetrun, "strategy", "save", *words, str(out)], capture_output=True, text=True)
            self.expect(run.returncode == 0, f"fleetrun strategy save {words}: {run.stderr}")
            return out.read_text(encoding="utf-8") if out.exists() else ""

    def parse(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".prototxt", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            return load_in_paddle(file.name)

    def check_committed(self):
        """The files in the repository are those that PaddlePaddle writes today."""
        with tempfile.TemporaryDirectory() as work:
            write(Path(work))
            for path in sorted(Path(work).rglob("*")):
                if path.is_file():
                    committed = self.folder / path.relative_to(work)
                    self.expect(committed.is_file() and committed.read_bytes() == path.read_bytes(), f"{committed} is out of date")

    def check_files(self):
        old_class = read_schema(SCHEMAS / "paddle_2.proto")
        for path in sorted(self.folder.rglob("*.prototxt")):
            ours = self.save(str(path))
            original = path.read_text(encoding="utf-8")
            if path.parent.name == "paddle_3":
                self.expect(ours == original, f"{path}: fleetrun writes other bytes")
                same = self.parse(ours) == load_in_paddle(path)
            else:
                same = text_format.Parse(ours, old_class()) == text_format.Parse(original, old_class())
            self.expect(same, f"{path}: fleetrun changes its meaning")
            self.files += 1

    def check_jobs(self):
        for keys, fields, *optimizer in JOBS:
            with tempfile.NamedTemporaryFile("w", suffix=".json") as job:
                json.dump({**JOB, "optimizer": optimizer[0] if optimizer else {}, "strategy": keys}, job)
                job.flush()
                message = self.parse(self.save(job.name))
            self.expect(contains(message, fields), f"the job with {keys} became\n{message}")
            self.jobs += 1


def check(fleetrun, folder):
    checks = Check(fleetrun, folder)
    checks.check_committed()
    checks.check_files()
    checks.check_jobs()
    print(*checks.failures, f"{checks.files} files and {checks.jobs} jobs, PaddlePaddle {paddle.__version__}", sep="\n")
    return 1 if checks.failures else 0


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "write":
        return write(Path(arguments[1]))
    if len(arguments) == 3 and arguments[0] == "check":
        return check(arguments[1], Path(arguments[2]))
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
