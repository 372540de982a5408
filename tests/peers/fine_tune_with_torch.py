#!/usr/bin/python3
"""The same fine-tuning by fleetrun and by PyTorch: a network for colour images and 10 classes gets a new last layer for 5, learns from
grey images with frozen first layers, and its last layer has a learning rate of its own. After 20 steps the weights and running statistics are
1e-5 of their norm apart at most, and the frozen ones have not changed. Needs Debian's python3-torch and python3-torchvision.

A single relu whose input is 0 but for rounding can go either way and moves all weights by more than that. PyTorch in float32 differs from
itself in float64 as much in some runs, so the median of several seeds counts. Small images and many frozen layers make such runs rare.

usage: fine_tune_with_torch.py BUILD_DIR [MODEL ...]     default: resnet20 on 1 rank, lenet on 2
"""
import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy
    import torch
    from torchvision.models.resnet import BasicBlock
except ImportError as missing:
    print(f'left out: {missing}; install python3-torch and python3-torchvision')
    sys.exit(77)

from safetensors_files import error_of, read_safetensors, write_safetensors

STEPS, BATCH, SIDE, CLASSES, OLD_CLASSES = 20, 8, 8, 5, 10
MEAN, DEVIATION = 120.0, 60.0
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY, HEAD_FACTOR = 0.002, 0.9, 1e-4, 10.0
MOST_APART = 1e-5
SEEDS = range(3, 8)  # of the weights and images


class BatchNorm(torch.nn.BatchNorm2d):
    """The running variance takes the batch's sum of squares over n, as PaddlePaddle's and fleetrun's; PyTorch divides by n - 1."""

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        with torch.no_grad():
            self.running_mean.lerp_(x.mean((0, 2, 3)), self.momentum)
            self.running_var.lerp_(x.var((0, 2, 3), unbiased=False), self.momentum)
        return torch.nn.functional.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)


class ResNet20(torch.nn.Module):
    """He et al. 2015, section 4.2, with the names of lib/runtime/models/resnet.cpp."""
    RANKS, HEAD, FIRST = 1, 'fc', 'conv1'
    FREEZE = ['conv1', 'bn1', 'layer1*', 'layer2']

    def __init__(self, channels, classes):
        super().__init__()
        self.conv1, self.bn1 = torch.nn.Conv2d(channels, 16, 3, padding=1, bias=False), BatchNorm(16)
        self.layer1, self.layer2, self.layer3 = self.stage(16, 16, 1), self.stage(16, 32, 2), self.stage(32, 64, 2)
        self.fc = torch.nn.Linear(64, classes)

    @staticmethod
    def stage(inputs, outputs, stride):
        def block(first, stride):
            shortcut = None
            if first != outputs:
                shortcut = torch.nn.Sequential(torch.nn.Conv2d(first, outputs, 1, stride, bias=False), BatchNorm(outputs))
            return BasicBlock(first, outputs, stride, shortcut, norm_layer=BatchNorm)
        return torch.nn.Sequential(block(inputs, stride), block(outputs, 1), block(outputs, 1))

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class LeNet(torch.nn.Module):
    """With the names of lib/runtime/models/lenet.cpp."""
    RANKS, HEAD, FIRST = 2, 'f2', 'c1'
    FREEZE = ['c1']

    def __init__(self, channels, classes):
        super().__init__()
        self.c1, self.c2 = torch.nn.Conv2d(channels, 32, 5, padding=2), torch.nn.Conv2d(32, 64, 5, padding=2)
        self.f1, self.f2 = torch.nn.Linear(64 * (SIDE // 4) ** 2, 512), torch.nn.Linear(512, classes)

    def forward(self, x):
        for layer in (self.c1, self.c2):
            x = torch.max_pool2d(torch.relu(layer(x)), 2)
        return self.f2(torch.relu(self.f1(x.flatten(1))))


MODELS = {'resnet20': ResNet20, 'lenet': LeNet}


def numbers_of(model):
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()
            if not name.endswith('num_batches_tracked')}


def write_idx(path, array):
    with gzip.open(path, 'wb') as file:
        file.write(struct.pack('>HBB', 0, 8, array.ndim) + struct.pack(f'>{array.ndim}I', *array.shape) + array.tobytes())


def write_job(folder, name, model):
    job = {'model': {'name': name, 'class_dim': CLASSES, 'pretrained': 'old.safetensors', 'new_head': 'auto', 'freeze': model.FREEZE},
           'data': {'train': {'format': 'idx', 'images': 'images.idx.gz', 'labels': 'labels.idx.gz', 'channels': 1,
                              'mean': [MEAN], 'std': [DEVIATION]},
                    'batch_size': BATCH // model.RANKS, 'shuffle': False},
           'optimizer': {'name': 'momentum', 'learning_rate': LEARNING_RATE, 'momentum': MOMENTUM, 'weight_decay': WEIGHT_DECAY,
                         'learning_rate_factors': {model.HEAD: HEAD_FACTOR}},
           'train': {'epochs': 1, 'threads': 1},
           'strategy': {'cudnn_exhaustive_search': False}}  # Winograd's rounding is not PyTorch's
    Path(folder, 'job.json').write_text(json.dumps(job), encoding='utf-8')


def is_in(name, layers):
    return any(name.startswith(layer.rstrip('*') + '.') for layer in layers)


def torch_steps(kind, start, images, labels):
    """The weights after training from `start`."""
    model = kind(1, CLASSES)
    model.load_state_dict({name: torch.tensor(value) for name, value in start.items()}, strict=False)
    head, others = [], []
    for name, value in model.named_parameters():
        if is_in(name, kind.FREEZE):
            value.requires_grad_(False)
        else:
            (head if is_in(name, [kind.HEAD]) else others).append(value)
    optimizer = torch.optim.SGD([{'params': others}, {'params': head, 'lr': LEARNING_RATE * HEAD_FACTOR}], lr=LEARNING_RATE,
                                momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    model.train()
    for name, module in model.named_modules():
        if is_in(name + '.', kind.FREEZE):
            module.eval()
    for step in range(STEPS):
        batch = slice(step * BATCH, (step + 1) * BATCH)
        x = (torch.tensor(images[batch]).float().unsqueeze(1) - MEAN) / DEVIATION
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), torch.tensor(labels[batch]).long()).backward()
        optimizer.step()
    return numbers_of(model)


def fleetrun(build, folder, *words):
    result = subprocess.run([f'{build}/bin/fleetrun', *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return result.stdout


def check_start(kind, old, start):
    """What the training begins with: the old weights, those of the first layer summed over the channels, and a new last layer."""
    for name, value in start.items():
        if is_in(name, [kind.HEAD]):
            assert value.shape[0] == CLASSES, name
        elif name == kind.FIRST + '.weight':
            assert numpy.allclose(value, old[name].sum(1, keepdims=True), atol=1e-6), name
        else:
            assert value.tobytes() == old[name].tobytes(), name


def tune(name, seed, build, folder):
    """Checks the start and the frozen weights. Returns how far the others are apart, at most, and how far they moved, at least."""
    kind = MODELS[name]
    torch.manual_seed(seed)
    random = numpy.random.default_rng(seed)
    old = numbers_of(kind(3, OLD_CLASSES))
    labels = random.integers(0, CLASSES, STEPS * BATCH).astype(numpy.uint8)
    images = random.integers(0, 200, (STEPS * BATCH, SIDE, SIDE)).astype(numpy.uint8) + labels[:, None, None] * 10
    write_safetensors(f'{folder}/old.safetensors', old)
    write_idx(f'{folder}/images.idx.gz', images)
    write_idx(f'{folder}/labels.idx.gz', labels)
    write_job(folder, name, kind)

    fleetrun(build, folder, 'export', 'job.json', 'start.safetensors')
    start = read_safetensors(f'{folder}/start.safetensors')
    check_start(kind, old, start)
    output = fleetrun(build, folder, f'--nproc_per_node={kind.RANKS}', '--device=cpu', '--console=all', '--log_level=ERROR', 'job.json')
    assert f'the layer {kind.FIRST} takes 3 channels' in output and f'the layer {kind.HEAD} does not fit' in output, output
    ours = read_safetensors(f'{folder}/output/model.safetensors')
    theirs = torch_steps(kind, start, images, labels)
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()

    frozen = [key for key in ours if is_in(key, kind.FREEZE)]
    for key in frozen:
        assert ours[key].tobytes() == start[key].tobytes() == theirs[key].tobytes(), f'{key} has changed'
    trained = [key for key in ours if key not in frozen]
    apart, key = max((error_of(ours[key], theirs[key]), key) for key in trained)
    moved = min(error_of(ours[key], start[key]) for key in trained)
    print(f'{name} on {kind.RANKS} ranks, {STEPS} steps, seed {seed}: {len(frozen)} frozen tensors have the same bits; {len(trained)} trained '
          f'ones moved by {moved:.1e} of their norm or more and are {apart:.1e} apart at most ({key})', flush=True)
    return apart, moved


def compare(name, build):
    results = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            results.append(tune(name, seed, build, folder))
    apart, moved = sorted(results)[len(results) // 2]
    return apart <= MOST_APART < moved / 10


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    good = [compare(name, os.path.abspath(sys.argv[1])) for name in sys.argv[2:] or MODELS]
    sys.exit(0 if all(good) else 1)


if __name__ == '__main__':
    main()
