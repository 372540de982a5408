#!/usr/bin/python3
"""The peer of bench/ddp: training steps of PyTorch on one batch of noise, on ranks that work together (DDP over Gloo) and each
for itself at the same time, in turn. Rank 0 prints JSON as bench_data_parallel does, and notes on what makes this PyTorch
slower than it could be.

usage: torch_data_parallel.py RANKS PAIRS STEPS mlp|lenet|resnet50 BATCH
"""
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
        return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                             nn.Linear(256, CLASSES))
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * (SIDE // 4)**2, 512), nn.ReLU(), nn.Linear(512, CLASSES))


def notes():
    with open('/proc/self/maps', encoding='utf-8') as maps:
        if 'openblas' not in maps.read():
            yield 'PyTorch without OpenBLAS: apt-get install libopenblas0-openmp'
    if 'OPENBLAS_CORETYPE' in os.environ:
        yield 'OPENBLAS_CORETYPE is set'


def train(pairs, steps, name, batch):
    import torch  # pylint: disable=import-outside-toplevel; only the ranks need it
    import torch.distributed
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group('gloo')
    shape, classes = ((3, 224, 224), 1000) if name == 'resnet50' else ((1, SIDE, SIDE), CLASSES)
    images, labels = torch.randn(batch, *shape), torch.randint(0, classes, (batch,))
    if name == 'resnet50':
        images = images.to(memory_format=torch.channels_last)

    def make_turn(together):
        model = make_model(torch, name)
        network = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if together else model
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

        def turn():
            torch.distributed.barrier()
            marks = [time.monotonic()]
            for _ in range(steps):
                optimizer.zero_grad(set_to_none=True)
                torch.nn.functional.cross_entropy(network(images), labels).backward()
                optimizer.step()
                marks.append(time.monotonic())
            # By the summed speed until the first rank has done its steps: behind that the others have the machine for themselves.
            first_end = torch.tensor([marks[-1]], dtype=torch.float64)
            torch.distributed.all_reduce(first_end, torch.distributed.ReduceOp.MIN)
            until = first_end.item()
            last = max(1, sum(mark < until for mark in marks))
            done = last - 1 + (until - marks[last - 1]) / (marks[last] - marks[last - 1])
            speed = torch.tensor([done / (until - marks[0])], dtype=torch.float64)
            torch.distributed.all_reduce(speed)
            return 1000 * torch.distributed.get_world_size() / speed.item()
        return turn

    turns = {'together_ms': make_turn(True), 'alone_ms': make_turn(False)}
    found = {who: [] for who in turns}
    for pair in range(-1, pairs):
        for who in list(turns) if pair % 2 == 0 else reversed(list(turns)):
            took = turns[who]()
            if pair >= 0:  # the first was the warm-up
                found[who].append(took)
    if torch.distributed.get_rank() == 0:
        print(json.dumps(found | {'notes': list(notes())}))


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def main():
    ranks, pairs, steps, name, batch = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    if 'RANK' in os.environ:
        return train(pairs, steps, name, batch)
    environment = os.environ | {'WORLD_SIZE': str(ranks), 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(free_port())}
    processes = [subprocess.Popen([sys.executable, *sys.argv], env=environment | {'RANK': str(rank)}) for rank in range(ranks)]
    return max(abs(process.wait()) for process in processes)


if __name__ == '__main__':
    sys.exit(main())
