#!/usr/bin/python3
"""The peer of bench/ddp: training steps of PyTorch on one batch of noise, on ranks that work together (DDP over Gloo) and each
for itself at the same time, in turn. Each way first warms up until its turns take the same time (steady.py). Rank 0 prints JSON as
bench_data_parallel does, and PyTorch's version.

usage: torch_data_parallel.py RANKS PAIRS STEPS mlp|lenet|resnet50 BATCH eager|compiled
"""
import inspect
import json
import os
import socket
import subprocess
import sys
import time

SIDE = 28
CLASSES = 10


def make_model(torch, name):
    nn = torch.nn
    if name == 'resnet50':
        import torchvision  # pylint: disable=import-outside-toplevel
        return torchvision.models.resnet50().to(memory_format=torch.channels_last)
    if name == 'mlp':
        return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 512), nn.ReLU(inplace=True), nn.Linear(512, 256),
                             nn.ReLU(inplace=True), nn.Linear(256, CLASSES))
    layers = nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2),
                           nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * (SIDE // 4)**2, 512),
                           nn.ReLU(inplace=True), nn.Linear(512, CLASSES))
    return layers.to(memory_format=torch.channels_last)


class Training:
    """Of one model: the ranks together, or each for itself."""

    def __init__(self, torch, name, batch, together, compiled):
        self.torch = torch
        shape, classes = ((3, 224, 224), 1000) if name == 'resnet50' else ((1, SIDE, SIDE), CLASSES)
        self.images = torch.randn(batch, *shape).to(memory_format=torch.channels_last)
        self.labels = torch.randint(0, classes, (batch,))
        model = make_model(torch, name)
        if together:
            # Batch norms keep statistics of their own on each rank, as fleetrun's do; the graph is the same in each step.
            parallel = torch.nn.parallel.DistributedDataParallel
            settings = {'gradient_as_bucket_view': True, 'static_graph': not compiled}
            names = inspect.signature(parallel).parameters
            settings['forward_sync_buffers' if 'forward_sync_buffers' in names else 'broadcast_buffers'] = False
            model = parallel(model, **settings)
        self.optimizer = make_optimizer(torch, model.parameters())
        self.network = torch.compile(model) if compiled else model

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.torch.nn.functional.cross_entropy(self.network(self.images), self.labels).backward()
        self.optimizer.step()

    def turn(self, steps):
        """Milliseconds of a step, by the ranks' summed speed until the first of them has done its steps: after that the others have
        the machine for themselves. All ranks get the same number."""
        torch = self.torch
        torch.distributed.barrier()
        marks = [time.monotonic()]
        for _ in range(steps):
            self.step()
            marks.append(time.monotonic())
        first_end = torch.tensor([marks[-1]], dtype=torch.float64)
        torch.distributed.all_reduce(first_end, torch.distributed.ReduceOp.MIN)
        until = first_end.item()
        last = max(1, sum(mark < until for mark in marks))
        done = last - 1 + (until - marks[last - 1]) / (marks[last] - marks[last - 1])
        speed = torch.tensor([done / (until - marks[0])], dtype=torch.float64)
        torch.distributed.all_reduce(speed)
        return 1000 * torch.distributed.get_world_size() / speed.item()


def make_optimizer(torch, parameters):
    settings = {'lr': 1e-3, 'momentum': 0.9}
    try:
        return torch.optim.SGD(parameters, fused=True, **settings)  # one pass over memory; on CPUs from PyTorch 2.4 on
    except (TypeError, RuntimeError):
        return torch.optim.SGD(parameters, **settings)


def train(pairs, steps, name, batch, how):
    import torch  # pylint: disable=import-outside-toplevel; only the ranks need it
    import torch.distributed
    from steady import warmed_up  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group('gloo')
    trainings = {key: Training(torch, name, batch, key == 'together_ms', how == 'compiled') for key in ('together_ms', 'alone_ms')}
    for training in trainings.values():
        times = []
        while not warmed_up(times):
            times.append(training.turn(steps))
    found = {key: [] for key in trainings}
    for pair in range(pairs):
        for key in list(trainings) if pair % 2 == 0 else reversed(list(trainings)):
            found[key].append(trainings[key].turn(steps))
    if torch.distributed.get_rank() == 0:
        print(json.dumps(found | {'version': torch.__version__}))


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def main():
    ranks, pairs, steps, name, batch, how = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), sys.argv[6]
    if 'RANK' in os.environ:
        return train(pairs, steps, name, batch, how)
    environment = os.environ | {'WORLD_SIZE': str(ranks), 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(free_port())}
    processes = [subprocess.Popen([sys.executable, *sys.argv], env=environment | {'RANK': str(rank)}) for rank in range(ranks)]
    return max(abs(process.wait()) for process in processes)


if __name__ == '__main__':
    sys.exit(main())
