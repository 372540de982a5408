#!/usr/bin/env python3
"""Writes what PyTorch computes for each op, forward and backward, as test vectors.

usage: scripts/make_torch_vectors.py [FOLDER]     default: tests/runtime/ops/vectors
  Needs python3-torch of Debian 12 (1.13). The files are committed; run this again only to add a case.

Inputs are float32; everything is computed from them in float64 and rounded to float32. A file is in the
safetensors format: eight bytes with the length of a JSON header (little endian), the header, the numbers.
Names: in.ARGUMENT, out.RESULT, seed.RESULT (the gradient that is put in), grad.ARGUMENT. The header's
__metadata__ has the op and each attribute as the program's text form writes it.
"""
import argparse
import json
import struct
from pathlib import Path

import torch
import torch.nn.functional as F

torch.manual_seed(20)
IGNORED = -1  # label of a sample that does not count


def text(attribute):
    """An attribute as graph/attributes.cpp reads it."""
    if isinstance(attribute, bool):
        return "true" if attribute else "false"
    if isinstance(attribute, str):
        return f'"{attribute}"'
    if isinstance(attribute, (list, tuple)):
        return "[" + ",".join(str(item) for item in attribute) + "]"
    return repr(attribute)


def write_safetensors(path, tensors, metadata):
    header, content = {"__metadata__": metadata}, b""
    for name, tensor in tensors.items():
        whole = tensor.dtype in (torch.int32, torch.int64)
        array = tensor.detach().to(torch.int32 if whole else torch.float32).contiguous().numpy()
        data = array.astype("<i4" if whole else "<f4").tobytes()
        header[name] = {"dtype": "I32" if whole else "F32", "shape": list(array.shape),
                        "data_offsets": [len(content), len(content) + len(data)]}
        content += data
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + content)


def random(*shape, distinct=False):
    """float32 numbers as float64; `distinct`: no two alike, none near 0, so that kinks are far away."""
    if not distinct:
        return torch.randn(*shape, dtype=torch.float32).double()
    count = int(torch.tensor(shape).prod())
    return ((torch.randperm(count) - count // 2).double() * 0.125 + 0.0625).reshape(*shape)


class Writer:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def case(self, name, op, inputs, compute, attributes=None, differentiate="y"):
        """`compute(**inputs)` gives a dict of results; `differentiate` is the one that gradients come from."""
        given = {key: value.clone().requires_grad_(value.is_floating_point() and differentiate is not None)
                 for key, value in inputs.items()}
        results = compute(**given)
        tensors = {f"in.{key}": value for key, value in inputs.items()}
        tensors |= {f"out.{key}": value for key, value in results.items()}
        if differentiate is not None:
            seed = random(*results[differentiate].shape)
            results[differentiate].backward(seed)
            tensors[f"seed.{differentiate}"] = seed
            tensors |= {f"grad.{key}": value.grad for key, value in given.items() if value.grad is not None}
        metadata = {"op": op} | {f"attribute.{key}": text(value) for key, value in (attributes or {}).items()}
        write_safetensors(self.folder / f"{name}.safetensors", tensors, metadata)


def convolutions(writer):
    def one(name, x, w, bias=True, strides=(1, 1), paddings=(0, 0), dilations=(1, 1), groups=1):
        inputs = {"x": random(*x), "w": random(*w)} | ({"b": random(w[0])} if bias else {})
        top, bottom, left, right = paddings if len(paddings) == 4 else (paddings[0],) * 2 + (paddings[1],) * 2

        def compute(x, w, b=None):
            padded = F.pad(x, (left, right, top, bottom))
            return {"y": F.conv2d(padded, w, b, stride=strides, dilation=dilations, groups=groups)}

        writer.case(f"conv2d_{name}", "conv2d", inputs, compute,
                    {"strides": strides, "paddings": paddings, "dilations": dilations, "groups": groups})

    one("odd_sizes", (3, 3, 9, 7), (5, 3, 3, 2))
    one("one_channel", (2, 1, 11, 9), (7, 1, 5, 5), paddings=(2, 2))
    one("strides_no_bias", (2, 5, 11, 10), (6, 5, 3, 3), bias=False, strides=(2, 3), paddings=(1, 2))
    one("four_paddings", (1, 4, 6, 7), (3, 4, 4, 3), paddings=(0, 3, 2, 1), strides=(1, 2))
    one("dilations", (2, 2, 13, 12), (4, 2, 3, 3), dilations=(2, 3), paddings=(2, 1))
    one("groups", (2, 6, 7, 8), (9, 2, 3, 3), groups=3, paddings=(1, 1), strides=(2, 1))
    one("depthwise", (1, 17, 7, 7), (17, 1, 3, 3), groups=17, paddings=(1, 1), strides=(2, 2), bias=False)
    one("one_by_one", (3, 19, 5, 5), (33, 19, 1, 1), strides=(2, 2))
    one("blocks", (2, 16, 6, 6), (32, 16, 3, 3), paddings=(1, 1))
    one("one_image_one_pixel", (1, 3, 3, 3), (1, 3, 3, 3))


def poolings(writer):
    def one(name, x, kind, kernel, strides, paddings=(0, 0), exclusive=True):
        def compute(x):
            if kind == "max":
                return {"y": F.max_pool2d(x, kernel, strides, paddings)}
            return {"y": F.avg_pool2d(x, kernel, strides, paddings, count_include_pad=not exclusive)}

        writer.case(f"pool2d_{name}", "pool2d", {"x": x}, compute,
                    {"kind": kind, "kernel": kernel, "strides": strides, "paddings": paddings,
                     "exclusive": exclusive})

    one("max", random(2, 5, 9, 7, distinct=True), "max", (3, 2), (2, 2), (1, 1))
    one("max_blocks", random(2, 16, 8, 6, distinct=True), "max", (2, 2), (2, 2))
    one("max_of_equals", torch.randint(0, 3, (2, 3, 7, 7)).double(), "max", (3, 3), (2, 2), (1, 1))
    one("average_exclusive", random(2, 3, 8, 9), "average", (3, 4), (2, 3), (1, 2))
    one("average_inclusive", random(1, 7, 7, 5), "average", (3, 3), (2, 1), (1, 1), exclusive=False)
    one("average_global", random(3, 18, 5, 4), "average", (5, 4), (1, 1))


def normalisations(writer):
    epsilon, momentum = 1e-5, 0.9

    def training(x, scale, bias, mean, variance):
        batch_variance, batch_mean = torch.var_mean(x, (0, 2, 3), unbiased=False)
        return {"y": F.batch_norm(x, None, None, scale, bias, training=True, eps=epsilon),
                "mean": mean * momentum + batch_mean * (1 - momentum),
                "variance": variance * momentum + batch_variance * (1 - momentum),
                "batch_mean": batch_mean, "batch_variance": batch_variance}

    def evaluation(x, scale, bias, mean, variance):
        return {"y": F.batch_norm(x, mean, variance, scale, bias, training=False, eps=epsilon)}

    for name, x in (("odd_sizes", (3, 5, 7, 6)), ("blocks", (2, 32, 5, 4)), ("padded_blocks", (2, 19, 3, 5)),
                    ("one_pixel", (7, 16, 1, 1)), ("one_image", (1, 4, 3, 3))):
        for mode, compute in (("training", training), ("evaluation", evaluation)):
            inputs = {"x": random(*x) * 2 + 3, "scale": random(x[1]), "bias": random(x[1]), "mean": random(x[1]),
                      "variance": random(x[1]).abs() + 0.25}
            writer.case(f"batch_norm_{mode}_{name}", "batch_norm", inputs, compute,
                        {"epsilon": epsilon, "momentum": momentum, "training": compute is training},
                        differentiate="y" if compute is training else None)


def dense(writer):
    writer.case("fc", "fc", {"x": random(5, 7), "w": random(3, 7), "b": random(3)},
                lambda x, w, b: {"y": F.linear(x, w, b)})
    writer.case("fc_no_bias", "fc", {"x": random(1, 33), "w": random(17, 33)}, lambda x, w: {"y": F.linear(x, w)})
    writer.case("fc_images", "fc", {"x": random(3, 5, 2, 3), "w": random(4, 30), "b": random(4)},
                lambda x, w, b: {"y": F.linear(x.flatten(1), w, b)})
    x = random(3, 4, 5)
    x[0, 0, :3] = 0  # the gradient at 0 is 0
    writer.case("relu", "relu", {"x": x}, lambda x: {"y": F.relu(x)})
    writer.case("elementwise_add", "elementwise_add", {"x": random(2, 3, 5), "y": random(2, 3, 5)},
                lambda x, y: {"sum": x + y}, differentiate="sum")
    writer.case("mean", "mean", {"x": random(13)}, lambda x: {"y": x.mean().reshape(1)})


def losses(writer):
    def loss(logits, label):
        return {"softmax": F.softmax(logits, 1).detach(),
                "loss": F.cross_entropy(logits, label.long(), reduction="none", ignore_index=IGNORED)}

    label = torch.tensor([3, 0, IGNORED, 6, 1], dtype=torch.int32)
    writer.case("softmax_with_cross_entropy", "softmax_with_cross_entropy",
                {"logits": random(5, 7), "label": label}, loss, differentiate="loss")
    writer.case("softmax_of_large_logits", "softmax_with_cross_entropy",
                {"logits": random(3, 4) * 100, "label": torch.tensor([0, 3, 2], dtype=torch.int32)}, loss,
                differentiate="loss")

    def accuracy(x, label):
        counted = label >= 0
        order = x.sort(dim=1, descending=True, stable=True).indices
        found = order == label[:, None]
        return {"hits": torch.stack([found[:, 0].sum(), found[:, :5].any(1).sum(), counted.sum()]).double()}

    x = random(9, 8)
    x[1, :] = 0.5  # equal scores: the lower index is higher
    x[2, 3:] = x[2, 3]
    label = torch.tensor([1, 0, 4, IGNORED, 7, 2, 2, 6, 5], dtype=torch.int32)
    writer.case("accuracy", "accuracy", {"x": x, "label": label}, accuracy, differentiate=None)


def optimizers(writer):
    rate = torch.tensor([0.15], dtype=torch.float32).double()

    def step(param, grad, velocity, learning_rate, **options):
        moved = torch.nn.Parameter(param.clone())
        moved.grad = grad.clone()
        optimizer = torch.optim.SGD([moved], lr=float(learning_rate), **options)
        if velocity is not None:
            optimizer.state[moved]["momentum_buffer"] = velocity.clone()
        optimizer.step()
        results = {"param": moved.detach()}
        if velocity is not None:
            results["velocity"] = optimizer.state[moved]["momentum_buffer"]
        return results

    writer.case("sgd", "sgd", {"param": random(3, 5), "grad": random(3, 5), "learning_rate": rate},
                lambda param, grad, learning_rate: step(param, grad, None, learning_rate, weight_decay=0.01),
                {"weight_decay": 0.01}, differentiate=None)
    for name, nesterov in (("momentum", False), ("momentum_nesterov", True)):
        writer.case(name, "momentum",
                    {"param": random(7, 3), "grad": random(7, 3), "velocity": random(7, 3), "learning_rate": rate},
                    lambda nesterov=nesterov, **inputs: step(momentum=0.75, nesterov=nesterov, weight_decay=0.125,
                                                             **inputs),
                    {"mu": 0.75, "use_nesterov": nesterov, "weight_decay": 0.125}, differentiate=None)


def adam(writer):
    beta1, beta2, epsilon, decay = 0.875, 0.9375, 1e-3, 0.125
    for name, steps_before in (("first_step", 0), ("later_step", 6)):
        rate = torch.tensor([0.15], dtype=torch.float32).double()
        inputs = {"param": random(7, 3), "grad": random(7, 3), "moment1": random(7, 3) * min(steps_before, 1),
                  "moment2": random(7, 3).abs() * min(steps_before, 1),
                  "beta1_pow": torch.tensor([beta1 ** (steps_before + 1)]).double(),
                  "beta2_pow": torch.tensor([beta2 ** (steps_before + 1)]).double(), "learning_rate": rate}

        def step(param, grad, moment1, moment2, beta1_pow, beta2_pow, learning_rate, steps_before=steps_before):
            moved = torch.nn.Parameter(param.clone())
            moved.grad = grad.clone()
            optimizer = torch.optim.Adam([moved], lr=float(learning_rate), betas=(beta1, beta2), eps=epsilon,
                                         weight_decay=decay)
            optimizer.state[moved] = {"step": torch.tensor(float(steps_before)), "exp_avg": moment1.clone(),
                                      "exp_avg_sq": moment2.clone()}
            optimizer.step()
            state = optimizer.state[moved]
            return {"param": moved.detach(), "moment1": state["exp_avg"], "moment2": state["exp_avg_sq"],
                    "beta1_pow": beta1_pow * beta1, "beta2_pow": beta2_pow * beta2}

        writer.case(f"adam_{name}", "adam", inputs, step,
                    {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": decay}, differentiate=None)


def other_ops(writer):
    x = random(3, 4, 5) * 4
    x[0, 0, :2], x[1, 0, :2] = 0, 6  # the gradient at 0 and at 6 is 0
    writer.case("relu6", "relu6", {"x": x}, lambda x: {"y": F.relu6(x)}, {"threshold": 6.0})
    writer.case("scale", "scale", {"x": random(3, 7)}, lambda x: {"y": x * 1.75 - 0.5}, {"scale": 1.75, "bias": -0.5})
    for axis, x, y in ((0, (2, 3), (4, 3)), (1, (2, 16, 3, 4), (2, 5, 3, 4)), (3, (2, 3, 4, 5), (2, 3, 4, 1))):
        writer.case(f"concat_axis_{axis}", "concat", {"x": random(*x), "y": random(*y)},
                    lambda x, y, axis=axis: {"joined": torch.cat((x, y), axis)}, {"axis": axis},
                    differentiate="joined")
    writer.case("weighted_mean", "weighted_mean", {"x": random(11), "weight": random(11)},
                lambda x, weight: {"y": (x * weight).mean().reshape(1)})


def main():
    default = Path(__file__).resolve().parent.parent / "tests/runtime/ops/vectors"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    writer = Writer(parser.parse_args().folder)
    for family in (convolutions, poolings, dense, losses, optimizers, normalisations, adam, other_ops):
        family(writer)


if __name__ == "__main__":
    main()
