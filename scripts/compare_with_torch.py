#!/usr/bin/python3
"""Trains one step of a model with fleetrun and with PyTorch on the same weights and images, and compares.

The gradient of every parameter is read off the weights that fleetrun saves after one step of plain SGD. The
error of a tensor is the L2 distance to PyTorch's result in float64; it may be at most 3 times that of PyTorch's
own float32. Wants Debian's python3-torch, python3-torchvision and a build of fleetrun.

usage: compare_with_torch.py FLEETRUN [MODEL ...] [--batch B] [--threads T]
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision
from PIL import Image

CLASSES = 10
LEARNING_RATE = 2.0 ** 20  # a power of two, so large that the step outweighs the weights' own rounding
MOST_TIMES_TORCH = 3.0


class MobileNetV1(torch.nn.Module):
    """Howard et al. 2017 with the parameter names of lib/runtime/models/mobilenet_v1.cpp."""
    BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]

    def __init__(self, num_classes):
        super().__init__()

        def unit(inputs, outputs, kernel, stride, groups):
            layer = torch.nn.Module()
            layer.conv = torch.nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
            layer.bn = torch.nn.BatchNorm2d(outputs)
            return layer
        self.stem = unit(3, 32, 3, 2, 1)
        self.blocks = torch.nn.ModuleList()
        channels = 32
        for outputs, stride in self.BLOCKS:
            block = torch.nn.Module()
            block.depthwise = unit(channels, channels, 3, stride, channels)
            block.pointwise = unit(channels, outputs, 1, 1, 1)
            self.blocks.append(block)
            channels = outputs
        self.fc = torch.nn.Linear(channels, num_classes)

    def forward(self, x):
        def run(layer, x):
            return torch.relu(layer.bn(layer.conv(x)))
        x = run(self.stem, x)
        for block in self.blocks:
            x = run(block.pointwise, run(block.depthwise, x))
        return self.fc(x.mean((2, 3)))


def make_model(name):
    if name == 'mobilenet_v1':
        return MobileNetV1(CLASSES), 64
    model = getattr(torchvision.models, name)(num_classes=CLASSES)
    if name == 'vgg16':
        for layer in model.modules():
            if isinstance(layer, torch.nn.Dropout):
                layer.p = 0.0
        return model, 224
    return model, 64


def write_safetensors(path, tensors):
    header, data = {}, b''
    for name, array in tensors.items():
        raw = numpy.ascontiguousarray(array, numpy.float32).tobytes()
        header[name] = {'dtype': 'F32', 'shape': list(array.shape), 'data_offsets': [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + data)


def read_safetensors(path):
    with open(path, 'rb') as file:
        length = struct.unpack('<Q', file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    header.pop('__metadata__', None)
    return {name: numpy.frombuffer(data[slice(*facts['data_offsets'])], numpy.float32).reshape(facts['shape'])
            for name, facts in header.items()}


def weights_of(model):
    return {name: value.detach().float().numpy() for name, value in model.state_dict().items()
            if not name.endswith('num_batches_tracked')}


def make_images(folder, batch, side):
    """Returns [batch, 3, side, side] in -1..1 and the labels, in the order in which fleetrun reads them."""
    generator = numpy.random.default_rng(1)
    labels = numpy.arange(batch) * CLASSES // max(batch, CLASSES)  # ascending, as folders are read
    for label in range(CLASSES):
        os.makedirs(f'{folder}/{label}')
        blank = numpy.zeros((side, side, 3), numpy.uint8)
        if label not in labels:  # a class without an image is an error; this one comes after the only batch
            Image.fromarray(blank).save(f'{folder}/{label}/z.png')
    images = generator.integers(0, 256, (batch, side, side, 3), numpy.uint8)
    for i, (image, label) in enumerate(zip(images, labels)):
        Image.fromarray(image).save(f'{folder}/{label}/{i:03}.png')
    return (images.transpose(0, 3, 1, 2).astype(numpy.float64) - 127.5) / 127.5, labels


def torch_gradients(model, images, labels, dtype):
    model = model.to(dtype).train()
    model.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.tensor(images, dtype=dtype)), torch.tensor(labels))
    loss.backward()
    return {name: value.grad.double().numpy() for name, value in model.named_parameters()}, float(loss)


def fleetrun_gradients(fleetrun, name, folder, weights, arguments):
    write_safetensors(f'{folder}/weights.safetensors', weights)
    normalised = {'format': 'image_folder', 'path': 'images', 'mean': [127.5] * 3, 'std': [127.5] * 3}
    job = {'model': {'name': name, 'class_dim': CLASSES, 'pretrained': 'weights.safetensors'},
           'data': {'train': normalised, 'batch_size': arguments.batch, 'shuffle': False},
           'optimizer': {'name': 'sgd', 'learning_rate': LEARNING_RATE},
           'train': {'max_steps': 1, 'log_every': 1, 'threads': arguments.threads}}
    with open(f'{folder}/job.json', 'w') as file:
        json.dump(job, file)
    subprocess.run([fleetrun, '--device=cpu', 'job.json'], cwd=folder, check=True, capture_output=True)
    after = read_safetensors(f'{folder}/output/model.safetensors')
    with open(f'{folder}/log/report.json') as file:
        loss = json.load(file)['train']['loss']
    # before - after, in float64: what is lost is half a bit of the larger of weight and step
    return {key: (weights[key].astype(numpy.float64) - after[key]) / LEARNING_RATE for key in weights}, loss


def compare(name, arguments):
    torch.manual_seed(arguments.seed)
    model, side = make_model(name)
    weights = weights_of(model)
    with tempfile.TemporaryDirectory() as folder:
        images, labels = make_images(f'{folder}/images', arguments.batch, side)
        ours, our_loss = fleetrun_gradients(arguments.fleetrun, name, folder, weights, arguments)
    model.load_state_dict({key: torch.tensor(value) for key, value in weights.items()}, strict=False)
    single, single_loss = torch_gradients(model, images, labels, torch.float32)
    model.load_state_dict({key: torch.tensor(value) for key, value in weights.items()}, strict=False)
    double, double_loss = torch_gradients(model, images, labels, torch.float64)
    worst = []
    for key, wanted in double.items():
        norm = numpy.linalg.norm(wanted) or 1.0
        our_error = numpy.linalg.norm(ours[key] - wanted) / norm
        torch_error = numpy.linalg.norm(single[key] - wanted) / norm
        worst.append((our_error / max(torch_error, 1e-9), our_error, torch_error, f'{key}, norm {norm:.1e}'))
    if os.environ.get('VERBOSE'):
        for entry in worst:
            print('%8.1f ours %.2e torch %.2e %s' % entry)
    worst.sort(reverse=True)
    bad = [entry for entry in worst if entry[0] > MOST_TIMES_TORCH]
    print(f'{name}: {len(double)} gradients, loss {our_loss:.6f} (float64 {double_loss:.6f}, float32 {single_loss:.6f}), '
          f'median ratio {worst[len(worst) // 2][0]:.2f}, worst {worst[0][0]:.2f} ({worst[0][3]}: ours {worst[0][1]:.2e}, '
          f'PyTorch float32 {worst[0][2]:.2e}), {len(bad)} above {MOST_TIMES_TORCH}')
    return not bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('fleetrun')
    parser.add_argument('models', nargs='*', default=['resnet18', 'resnet50', 'vgg16', 'mobilenet_v1'])
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--seed', type=int, default=1, help='of the weights')
    parser.add_argument('--threads', type=int, default=2)
    arguments = parser.parse_args()
    arguments.fleetrun = os.path.abspath(arguments.fleetrun)
    return 0 if all([compare(name, arguments) for name in arguments.models]) else 1


if __name__ == '__main__':
    sys.exit(main())
