#!/usr/bin/python3
"""The peer of bench/resnet50: training steps of PyTorch on one batch of noise, channels last. Prints its version and notes on what
makes it slower than it could be, then runs steps as it is asked to (step_loop.py).

usage: torch_step.py MODEL BATCH THREADS fp32|bf16 eager|compiled
"""
import sys

import step_loop
import torch
import torch.nn.functional as F
import torchvision


class BasicBlock(torch.nn.Module):
    """Of He et al. 2015, with a projection where the size changes."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(outputs)
        self.conv2 = torch.nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(outputs)
        self.downsample = torch.nn.Sequential()
        if stride != 1:
            self.downsample = torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                                  torch.nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return F.relu(y + self.downsample(x), inplace=True)


def resnet20():
    layers = [torch.nn.Conv2d(3, 16, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(16), torch.nn.ReLU(inplace=True)]
    inputs = 16
    for outputs, stride in ((16, 1), (32, 2), (64, 2)):
        for block in range(3):
            layers.append(BasicBlock(inputs, outputs, stride if block == 0 else 1))
            inputs = outputs
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))


def lenet():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 32, 5, padding=2), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2),
                               torch.nn.Conv2d(32, 64, 5, padding=2), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2),
                               torch.nn.Flatten(), torch.nn.Linear(64 * 7 * 7, 512), torch.nn.ReLU(inplace=True),
                               torch.nn.Linear(512, 10))


def mlp():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 512), torch.nn.ReLU(inplace=True),
                               torch.nn.Linear(512, 256), torch.nn.ReLU(inplace=True), torch.nn.Linear(256, 10))


def notes():
    if 'BLAS_INFO=mkl' not in torch.__config__.show():
        with open('/proc/self/maps', encoding='utf-8') as maps:
            if 'openblas' not in maps.read():
                yield f'PyTorch {torch.__version__} has neither MKL nor OpenBLAS: apt-get install libopenblas0-openmp'
    if not torch.backends.mkldnn.is_available():
        yield f'PyTorch {torch.__version__} has no oneDNN'


def sgd(parameters):
    settings = {'lr': 1e-3, 'momentum': 0.9, 'weight_decay': 1e-4}
    try:
        return torch.optim.SGD(parameters, fused=True, **settings)  # one pass over memory; on CPUs from PyTorch 2.4 on
    except (TypeError, RuntimeError):
        return torch.optim.SGD(parameters, **settings)


def main():
    name, batch, threads, dtype, how = sys.argv[1], *map(int, sys.argv[2:4]), *sys.argv[4:]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, shape = {'resnet20': (resnet20, (3, 32, 32)), 'lenet': (lenet, (1, 28, 28)), 'mlp': (mlp, (1, 28, 28)),
                    'resnet50': (torchvision.models.resnet50, (3, 224, 224))}[name]
    model = model().to(memory_format=torch.channels_last)
    images = torch.randn(batch, *shape).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (batch,))

    def loss_of_batch():
        with torch.autocast('cpu', dtype=torch.bfloat16, enabled=dtype == 'bf16'):
            return F.cross_entropy(model(images), labels)

    forward = torch.compile(loss_of_batch) if how == 'compiled' else loss_of_batch
    optimizer = sgd(model.parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        forward().backward()
        optimizer.step()

    step_loop.answer(step, {'version': torch.__version__, 'threads': torch.get_num_threads(), 'notes': list(notes())})


if __name__ == '__main__':
    main()
