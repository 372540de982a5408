#!/usr/bin/python3
"""The peer of bench/collectives: times PyTorch's all_reduce of f32 sums over Gloo. Prints "MEDIAN P90 MIN" in microseconds, as
rank 0 saw them.

usage: torch_all_reduce.py RANKS BYTES ROUNDS
"""
import os
import socket
import subprocess
import sys
import time

WARM_UP = 20  # rounds


def measure(count, rounds):
    import torch  # pylint: disable=import-outside-toplevel; only the ranks need it
    import torch.distributed
    torch.set_num_threads(1)
    torch.distributed.init_process_group('gloo')
    values = torch.zeros(count)
    times = []
    for _ in range(WARM_UP + rounds):
        torch.distributed.barrier()
        start = time.perf_counter()
        torch.distributed.all_reduce(values)
        times.append((time.perf_counter() - start) * 1e6)
    times = sorted(times[WARM_UP:])
    if torch.distributed.get_rank() == 0:
        print(f'{times[len(times) // 2]:.3f} {times[len(times) * 9 // 10]:.3f} {times[0]:.3f}')
    torch.distributed.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def main():
    ranks, size, rounds = map(int, sys.argv[1:])
    if 'RANK' in os.environ:
        return measure(size // 4, rounds)
    environment = os.environ | {'WORLD_SIZE': str(ranks), 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(free_port())}
    processes = [subprocess.Popen([sys.executable, *sys.argv], env=environment | {'RANK': str(rank)}) for rank in range(ranks)]
    return max(abs(process.wait()) for process in processes)


if __name__ == '__main__':
    sys.exit(main())
