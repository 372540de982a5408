#!/usr/bin/python3
"""Weights between fleetrun and the frameworks whose names it reads and writes.

usage: weight_files.py names FRAMEWORK              prints names and shapes for tests/runtime/checkpoint/names/FRAMEWORK.txt
       weight_files.py check FRAMEWORK BUILD_DIR    compares them with that file. Then sends a model with random weights from the framework to
                                                    fleetrun and back: same logits, strictly the same tensors, the same bits
FRAMEWORK is torchvision, timm or paddle. scripts/setup --peers installs them.
"""
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path.home() / '.cache' / 'fleetrun'
FOLDERS = {'paddle': os.environ.get('FLEETRUN_PEERS') or CACHE / 'peers',  # the virtual environments of scripts/setup --peers
           'timm': os.environ.get('FLEETRUN_PEERS_TORCH') or CACHE / 'peers-torch'}
NAMES = Path(__file__).resolve().parents[1] / 'runtime' / 'checkpoint' / 'names'
MODELS = {'torchvision': ['resnet18'], 'timm': ['resnet18'], 'paddle': ['resnet18', 'mobilenet_v1']}
CLASSES, SIDE, BATCH = 10, 64, 4
MOST_APART = 1e-4  # of the logits' norm


def import_or_leave_out(module):
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        python = f'{FOLDERS[module]}/bin/python3' if module in FOLDERS else sys.executable
        if python != sys.executable and os.path.exists(python):
            os.execv(python, [python, *sys.argv])
        print(f'left out: {missing}; scripts/setup --peers installs it')
        sys.exit(77)


class Torch:
    """torchvision or timm."""
    names = 'torchvision'

    def __init__(self, module):
        self.module, self.torch = import_or_leave_out(module), import_or_leave_out('torch')

    def make(self, model):
        if self.module.__name__ == 'timm':
            return self.module.create_model(model, num_classes=CLASSES)
        return getattr(self.module.models, model)(num_classes=CLASSES)

    def state(self, model):
        return {name: value.numpy() for name, value in model.state_dict().items()}

    def load_strictly(self, model, tensors):
        model.load_state_dict({name: self.torch.tensor(value) for name, value in tensors.items()}, strict=True)

    def evaluate(self, model, images):
        with self.torch.no_grad():
            return model.eval()(self.torch.tensor(images)).numpy()


class Paddle:
    names = 'paddle'

    def __init__(self, _):
        self.paddle = import_or_leave_out('paddle')
        self.models = importlib.import_module('paddle.vision.models')

    def make(self, model):
        return getattr(self.models, model)(num_classes=CLASSES)

    def state(self, model):
        return {name: value.numpy() for name, value in model.state_dict().items()}

    def load_strictly(self, model, tensors):
        missing, unexpected = model.set_state_dict({name: self.paddle.to_tensor(value) for name, value in tensors.items()})
        assert not missing and not unexpected, (missing, unexpected)

    def evaluate(self, model, images):
        model.eval()
        with self.paddle.no_grad():
            return model(self.paddle.to_tensor(images)).numpy()


def lines_of(framework, model):
    state = framework.state(framework.make(model))
    return [f'{model} {name} {json.dumps(list(value.shape), separators=(",", ":"))}' for name, value in state.items()]


def randomise(state, random):
    """Numbers for each tensor that keep the signal of a deep network alive, with statistics unlike those of a new model."""
    for name, value in state.items():
        if value.dtype.kind != 'f':
            yield name, value
        elif name.endswith('var') or name.endswith('variance') or (name.endswith('weight') and value.ndim == 1):
            yield name, random.uniform(0.5, 1.5, value.shape).astype('float32')
        elif value.ndim == 1:
            yield name, (0.1 * random.standard_normal(value.shape)).astype('float32')
        else:
            yield name, value


def run(build, folder, *words):
    subprocess.run([f'{build}/bin/{words[0]}', *words[1:]], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def logits_of_fleetrun(build, folder, images):
    from safetensors_files import read_safetensors, write_safetensors
    import numpy
    write_safetensors(f'{folder}/batches.safetensors', {'images': images[None], 'labels': numpy.zeros((1, BATCH), numpy.int32)})
    run(build, folder, 'step_probe', 'job.json', 'batches.safetensors', 'result.safetensors')
    return read_safetensors(f'{folder}/result.safetensors')['evaluation.logits']


def check(framework, model, build, folder):
    import numpy
    from safetensors_files import error_of, read_safetensors, write_safetensors
    random = numpy.random.default_rng(5)
    theirs = framework.make(model)
    weights = dict(randomise(framework.state(theirs), random))
    framework.load_strictly(theirs, weights)
    write_safetensors(f'{folder}/theirs.safetensors', weights)
    job = {'model': {'name': model, 'class_dim': CLASSES, 'input_shape': [3, SIDE, SIDE], 'pretrained': 'theirs.safetensors'},
           'data': {'train': {'format': 'synthetic', 'samples': 8, 'classes': CLASSES, 'shape': [3, SIDE, SIDE]}}}
    Path(folder, 'job.json').write_text(json.dumps(job), encoding='utf-8')

    images = random.standard_normal((BATCH, 3, SIDE, SIDE), numpy.float32)
    wanted = framework.evaluate(theirs, images)
    read = error_of(logits_of_fleetrun(build, folder, images), wanted)

    run(build, folder, 'fleetrun', 'export', '--names=' + framework.names, 'job.json', 'ours.safetensors')
    exported = read_safetensors(f'{folder}/ours.safetensors')
    again = framework.make(model)
    framework.load_strictly(again, exported)
    written = error_of(framework.evaluate(again, images), wanted)
    same_bits = all(value.tobytes() == weights[name].tobytes() for name, value in exported.items())

    other = {'torchvision': 'paddle', 'paddle': 'torchvision'}[framework.names]
    run(build, folder, 'fleetrun', 'export', '--names=' + other, 'ours.safetensors', 'other.safetensors')
    run(build, folder, 'fleetrun', 'export', '--names=' + framework.names, 'other.safetensors', 'back.safetensors')
    same_file = Path(folder, 'back.safetensors').read_bytes() == Path(folder, 'ours.safetensors').read_bytes()
    print(f'  {model}: logits {read:.1e} apart when read, {written:.1e} when written; tensors have the same bits: {same_bits}; '
          f'the file as {other} and back is the same: {same_file}')
    return read < MOST_APART and written < MOST_APART and same_bits and same_file


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in MODELS or len(sys.argv) != {'names': 3, 'check': 4}.get(sys.argv[1]):
        sys.exit(__doc__)
    action, name = sys.argv[1:3]
    framework = (Paddle if name == 'paddle' else Torch)(name)
    lines = [line for model in MODELS[name] for line in lines_of(framework, model)]
    if action == 'names':
        print('\n'.join(lines))
        return
    committed = (NAMES / f'{framework.names}.txt').read_text(encoding='utf-8').splitlines()
    assert lines == committed, f'{name} has other names than {NAMES}: {sorted(set(lines) ^ set(committed))[:10]}'
    good = True
    for model in MODELS[name]:
        with tempfile.TemporaryDirectory() as folder:
            good = check(framework, model, os.path.abspath(sys.argv[3]), folder) and good
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
