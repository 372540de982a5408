"""Measures programs in their steady state, in turn. A program runs as many steps as a line that it reads says and answers with
JSON: step_ms, their mean time, and peak_mib, the most memory that it held since its last answer."""
import json
import statistics
import subprocess
import sys
import tempfile
import threading

AGREE = 1.02  # slowest over fastest of the last three groups of steps
MOST_WARM_UP = 20  # groups
PATIENCE = 1800  # seconds for one answer; torch.compile works for minutes before its first step


def is_steady(times):
    return len(times) >= 3 and max(times[-3:]) <= AGREE * min(times[-3:])


def warmed_up(times):
    return is_steady(times) or len(times) >= MOST_WARM_UP


class Program:
    """A program that is being measured; `group` steps count as one."""

    def __init__(self, name, command, environment, group):
        self.name, self.group = name, group
        self.command = [str(word) for word in command]
        self.warm_up_ms, self.milliseconds, self.peak_mib = [], [], 0
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.process = subprocess.Popen(self.command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        self.about = self.read()

    def read(self):
        watch = threading.Timer(PATIENCE, self.process.kill)
        watch.start()
        line = self.process.stdout.readline()
        watch.cancel()
        if not line:
            status = self.process.wait()
            self.errors.seek(0)
            sys.exit(f"{' '.join(self.command)} ended with {status}: {self.errors.read()[-2000:]}")
        return json.loads(line)

    def run_group(self):
        print(self.group, file=self.process.stdin, flush=True)
        return self.read()

    def warm_up(self):
        while not warmed_up(self.warm_up_ms):
            self.warm_up_ms.append(self.run_group()["step_ms"])

    def measure(self):
        found = self.run_group()
        self.milliseconds.append(found["step_ms"])
        self.peak_mib = max(self.peak_mib, found["peak_mib"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.errors.close()

    def median(self):
        return statistics.median(self.milliseconds)

    def describe_warm_up(self):
        return f"{len(self.warm_up_ms)} groups{'' if is_steady(self.warm_up_ms) else ', not steady'}"


def measure_in_turn(programs, turns, between=lambda turn: None):
    """Warms up each by itself, then one group of steps of each in turn, so that all see the machine's faster and slower minutes."""
    for program in programs:
        program.warm_up()
    for turn in range(turns):
        for i in range(len(programs)):
            programs[(turn + i) % len(programs)].measure()
        between(turn)
