"""The side of a benchmark's peer: it runs steps as it is asked to, so that programs can take turns without losing what they warmed up."""
import json
import sys
import time


def take_peak_mib():
    """The most memory that this process held since the last call."""
    with open('/proc/self/status', encoding='utf-8') as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith('VmHWM:'))
    with open('/proc/self/clear_refs', 'w', encoding='utf-8') as reset:
        reset.write('5')  # proc(5): sets the high-water mark to what is held now
    return peak / 1024


def answer(step, about):
    """Prints `about`, then answers each line of standard input, a number of steps, with their mean time and the peak of memory."""
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        count = int(line)
        start = time.perf_counter()
        for _ in range(count):
            step()
        took = (time.perf_counter() - start) * 1000
        print(json.dumps({'step_ms': took / count, 'peak_mib': take_peak_mib()}), flush=True)
