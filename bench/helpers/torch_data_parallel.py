#!/usr/bin/python3
"""The peer of bench/ddp: training steps of PyTorch on one batch of noise, on ranks that work together (DDP over Gloo) or each
for itself at the same time. Rank 0 prints JSON: step_ms, seconds of all steps, and notes on what makes this PyTorch slower than
it could be.

usage: torch_data_parallel.py together|independent RANKS STEPS mlp|lenet BATCH
"""
import json
import os
import socket
import subprocess
import sys
import time

WARM_UP = 20
SIDE = 28
CLASSES = 10


def make_model(torch, name):
    nn = torch.nn
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


def train(together, steps, name, batch):
    import torch  # pylint: disable=import-outside-toplevel; only the ranks need it
    import torch.distributed
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group('gloo')
    model = make_model(torch, name)
    images, labels = torch.randn(batch, 1, SIDE, SIDE), torch.randint(0, CLASSES, (batch,))
    network = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if together else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()

    for _ in range(WARM_UP):
        step()
    torch.distributed.barrier()
    times = []
    start = time.perf_counter()
    for _ in range(steps):
        before = time.perf_counter()
        step()
        times.append((time.perf_counter() - before) * 1000)
    seconds = time.perf_counter() - start
    torch.distributed.barrier()  # the cores are busy until the slowest is done
    if torch.distributed.get_rank() == 0:
        print(json.dumps({'step_ms': times, 'seconds': seconds, 'notes': list(notes())}))


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def main():
    how, ranks, steps, name, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    if 'RANK' in os.environ:
        return train(how == 'together', steps, name, batch)
    environment = os.environ | {'WORLD_SIZE': str(ranks), 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(free_port())}
    processes = [subprocess.Popen([sys.executable, *sys.argv], env=environment | {'RANK': str(rank)}) for rank in range(ranks)]
    return max(abs(process.wait()) for process in processes)


if __name__ == '__main__':
    sys.exit(main())
