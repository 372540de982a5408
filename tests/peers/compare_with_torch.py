#!/usr/bin/python3
"""Holds fleetrun's models against PyTorch's on the same weights and batches: logits, loss, the gradient of every
parameter, the weights after some Momentum steps, and weights exported in either direction.

The error of a tensor is the L2 distance to PyTorch's result in float64, over its norm; it may be at most 3 times
that of PyTorch's own float32. A single relu whose input is 0 but for rounding can go either way and change all
gradients before it: in a small network that happens in some runs only, so that --seeds takes the median of several.
In a large one, many do in every run, in either framework. Wants Debian's python3-torch and python3-torchvision (with libopenblas0-openmp, or
float64 takes very long), and a build of fleetrun with tests.

usage: compare_with_torch.py BUILD_DIR [MODEL ...] [--batch B] [--side PIXELS] [--steps N] [--threads T] [--seeds S...]
                             [--device cuda:0]
With a GPU both work on it, in full float32.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    import torchvision
except ImportError as missing:
    print(f'left out: {missing}; install python3-torch and python3-torchvision')
    sys.exit(77)

from safetensors_files import error_of, read_safetensors, write_safetensors

CLASSES = 10
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.001, 0.9, 1e-4  # higher rates let rounding grow beyond the signal
MOST_TIMES_TORCH = 3.0
MOST_LOGITS_APART = 1e-4  # of their norm, when weights go from one framework to the other
# Below this an error is rounding of the result itself: half a unit in the last place of float32.
LEAST_ERROR = 3e-8


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
        return MobileNetV1(CLASSES)
    model = getattr(torchvision.models, name)(num_classes=CLASSES)
    for layer in model.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    return model


def weights_of(model):
    return {name: value.detach().float().cpu().numpy().copy() for name, value in model.state_dict().items()
            if not name.endswith('num_batches_tracked')}


def tensor(values, device, dtype=None):
    return torch.tensor(values, dtype=dtype, device=device)


def load(model, weights):
    model.load_state_dict({key: torch.tensor(value) for key, value in weights.items()}, strict=False)
    return model


def learn_statistics(model, images):
    """Sets the running statistics to those of a batch, so that evaluation carries a signal to the logits."""
    layers = [layer for layer in model.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    for momentum in (1.0, 0.1):
        for layer in layers:
            layer.momentum = momentum
        if momentum == 1.0:
            with torch.no_grad():
                model.train()(torch.tensor(images))


def torch_steps(model, weights, batches, dtype, device):
    """The same tensors as step_probe writes, as float64."""
    torch.set_default_dtype(dtype)
    model = load(model.to(dtype).to(device), weights)
    results, losses = {}, []
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    with torch.no_grad():
        results['evaluation.logits'] = model.eval()(tensor(batches['images'][0], device, dtype))
    model.train()
    for step, (images, labels) in enumerate(zip(batches['images'], batches['labels'])):
        optimizer.zero_grad()
        logits = model(tensor(images, device, dtype))
        by_sample = torch.nn.functional.cross_entropy(logits, tensor(labels, device).long(), reduction='none')
        loss = by_sample.mean()
        loss.backward()
        losses.append(float(loss))
        if step == 0:
            results |= {'logits': logits.detach(), 'losses': by_sample.detach()}
            results |= {f'gradient.{key}': value.grad.clone() for key, value in model.named_parameters()}
        optimizer.step()
    results |= {f'weight.{key}': value.detach() for key, value in model.named_parameters()}
    results = {key: value.double().cpu().numpy() for key, value in results.items()}
    model.cpu()
    return results | {'loss': numpy.array(losses)}


def write_job(arguments, name, seed, folder, batches):
    job = {'model': {'name': name, 'class_dim': CLASSES, 'dropout': 0},
           'data': {'train': {'format': 'synthetic', 'samples': 8, 'classes': CLASSES,
                              'shape': list(batches['images'].shape[2:])}},
           'optimizer': {'name': 'momentum', 'learning_rate': LEARNING_RATE, 'momentum': MOMENTUM,
                         'weight_decay': WEIGHT_DECAY},
           'train': {'max_steps': 1, 'threads': arguments.threads, 'seed': seed},
           'strategy': {'cudnn_exhaustive_search': False}}  # Winograd's rounding is not PyTorch's
    with open(f'{folder}/job.json', 'w') as file:
        json.dump(job, file)


def fleetrun_steps(arguments, folder, weights, batches):
    write_safetensors(f'{folder}/weights.safetensors', weights)
    write_safetensors(f'{folder}/batches.safetensors', batches)
    probe = [f'{arguments.build}/bin/step_probe', 'job.json', 'batches.safetensors', 'result.safetensors',
             'model.pretrained=weights.safetensors']
    environment = os.environ | ({'FLEETRUN_TEST_DEVICE': arguments.device} if arguments.device != 'cpu' else {})
    subprocess.run(probe, cwd=folder, check=True, env=environment)
    return {key: value.astype(numpy.float64) for key, value in read_safetensors(f'{folder}/result.safetensors').items()}


def errors(ours, single, double):
    """By tensor: (ours, PyTorch float32's)."""
    return {key: (error_of(ours[key], double[key]), error_of(single[key], double[key])) for key in double}


def judge(kind, runs):
    """Prints the errors of the tensors of one kind over all runs; returns whether all are within bounds."""
    rows = []
    for key in runs[0]:
        by_ratio = sorted((run[key][0] / max(run[key][1], LEAST_ERROR), *run[key], key) for run in runs)
        rows.append(by_ratio[len(runs) // 2])
        if os.environ.get('VERBOSE'):
            print('%8.2f  ours %.2e  PyTorch float32 %.2e  %s' % rows[-1])
    rows.sort(reverse=True)
    bad = sum(row[0] > MOST_TIMES_TORCH for row in rows)
    print(f'  {kind}: {len(rows)} tensors, times PyTorch float32\'s error: median {rows[len(rows) // 2][0]:.2f}, '
          f'worst {rows[0][0]:.2f} ({rows[0][3]}: ours {rows[0][1]:.2e}, PyTorch {rows[0][2]:.2e}), '
          f'{bad} above {MOST_TIMES_TORCH:g}', flush=True)
    return bad == 0


def exchanged(arguments, folder, model, batches):
    """Our exported weights in PyTorch: how far apart the logits are to which both evaluate them. An untrained model has no
    statistics yet: PyTorch adds them."""
    subprocess.run([f'{arguments.build}/bin/fleetrun', 'export', 'job.json', 'exported.safetensors'], cwd=folder,
                   check=True, stdout=subprocess.DEVNULL)
    weights = read_safetensors(f'{folder}/exported.safetensors')
    torch.set_default_dtype(torch.float32)
    load(model.float(), weights)
    learn_statistics(model, batches['images'][0])
    weights = weights_of(model)
    model.eval()
    with torch.no_grad():
        theirs = model(torch.tensor(batches['images'][0])).numpy()
    ours = fleetrun_steps(arguments, folder, weights, {key: value[:1] for key, value in batches.items()})
    return error_of(ours['evaluation.logits'], theirs)


def one_run(name, seed, arguments, folder):
    """Gives the errors by kind of tensor, and how far apart logits are when weights go from one to the other."""
    torch.manual_seed(seed)
    model = make_model(name)
    side = 224 if name == 'vgg16' else arguments.side
    generator = numpy.random.default_rng(seed)
    shape = (arguments.steps, arguments.batch)
    batches = {'images': generator.standard_normal((*shape, 3, side, side), numpy.float32),
               'labels': generator.integers(0, CLASSES, shape, numpy.int32)}
    learn_statistics(model, batches['images'][0])
    weights = weights_of(model)
    write_job(arguments, name, seed, folder, batches)
    ours = fleetrun_steps(arguments, folder, weights, batches)
    single = torch_steps(model, weights, batches, torch.float32, arguments.device)
    double = torch_steps(model, weights, batches, torch.float64, arguments.device)
    found = errors(ours, single, double)
    print(f'  seed {seed}: mean loss {ours["loss"][0]:.7f}, PyTorch {single["loss"][0]:.7f} in float32, '
          f'{double["loss"][0]:.7f} in float64', flush=True)
    kinds = {'logits and losses of the batch': {key: found[key] for key in ('logits', 'losses')},
             'gradients': {key: value for key, value in found.items() if key.startswith('gradient.')},
             f'weights after {arguments.steps} Momentum steps':
                 {key: value for key, value in found.items() if key.startswith('weight.')}}
    apart = [error_of(ours['evaluation.logits'], single['evaluation.logits']),
             exchanged(arguments, folder, model, batches)]
    return kinds, apart


def compare(name, arguments):
    print(f'{name}, batch {arguments.batch} of {224 if name == "vgg16" else arguments.side} pixels square:', flush=True)
    runs, apart = [], []
    for seed in arguments.seeds:
        with tempfile.TemporaryDirectory() as folder:
            kinds, logits = one_run(name, seed, arguments, folder)
        runs.append(kinds)
        apart.append(logits)
    good = [judge(kind, [run[kind] for run in runs]) for kind in runs[0]]
    for way, distances in zip(('exported by PyTorch, read by fleetrun', 'exported by fleetrun, read by PyTorch'), zip(*apart)):
        print(f'  {way}: evaluation logits {max(distances):.1e} of their norm apart', flush=True)
        good.append(max(distances) < MOST_LOGITS_APART)
    return all(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', metavar='BUILD_DIR', help='build/release')
    parser.add_argument('models', nargs='*', default=['resnet50', 'vgg16', 'mobilenet_v1'])
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--side', type=int, default=64, help='of the images, in pixels (vgg16: always 224)')
    parser.add_argument('--steps', type=int, default=10)
    parser.add_argument('--seeds', type=int, nargs='+', default=[1], help='of the weights and images')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--device', default='cpu', help='cpu, or cuda:0 for both frameworks')
    arguments = parser.parse_args()
    arguments.build = os.path.abspath(arguments.build)
    torch.set_num_threads(arguments.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return 0 if all([compare(name, arguments) for name in arguments.models]) else 1


if __name__ == '__main__':
    sys.exit(main())
