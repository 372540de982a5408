"""The part of bench/collectives with --hosts 2: all-reduce between two hosts, ours beside Gloo alone and Open MPI over TCP."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

from helpers.hosts import Hosts

HERE = pathlib.Path(__file__).resolve().parent
SIZES = {"4 KB": 4096, "1 MB": 1 << 20, "100 MB": 100 << 20}
SLOW_SIZES = {"4 KB": 4096, "1 MB": 1 << 20, "16 MB": 16 << 20}  # a round of 100 MB would take 3 s
GLOO_ALGORITHMS = ["ring", "bcube"]
MPI_ALGORITHMS = {None: "its own choice", 3: "recursive doubling", 4: "ring", 5: "segmented ring", 6: "Rabenseifner"}
PATIENCE = 300  # seconds for one measurement
WARM_UP_AND_CHECK = 21  # all-reduces of bench_all_reduce beside its rounds
BYTES_ROUNDS = 5


def rounds_of(size, slow):
    rounds = 1000 if size <= 65536 else 300 if size <= 1 << 20 else 11
    return max(rounds // 5, 5) if slow else rounds


def times_of(command):
    """Median, 90th percentile and least, in microseconds, as the first line of numbers says."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode != 0:
        sys.exit(f"bench/collectives: {' '.join(map(str, command))} ended with {done.returncode}: {done.stderr}")
    return [float(number) for number in done.stdout.split()]


class TwoHosts:
    def __init__(self, program, slow, can_compile_mpi):
        self.program, self.slow, self.missed = program, slow, 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fleetrun-bench-"))
        self.hosts = Hosts(slow)
        try:
            self.gloo = self.compile(["c++", "-std=c++17", "-O3", "-march=native"], "gloo_all_reduce", ["-lgloo", "-lpthread"])
            self.mpi = self.compile(["mpicxx", "-O3"], "mpi_all_reduce", []) if can_compile_mpi else None
            self.agent = self.hosts.write_agent(self.folder)
        except BaseException:
            self.remove()
            raise
        self.best = {}  # the fastest algorithm, by peer, ranks and size

    def remove(self):
        self.hosts.remove()
        shutil.rmtree(self.folder)

    def compile(self, compiler, name, libraries):
        program = self.folder / name
        subprocess.run([*compiler, "-o", program, HERE / f"{name}.cpp", *libraries], check=True)
        return str(program)

    def ours(self, way, ranks, size, rounds=None):
        return [self.program, way, str(ranks), str(size), str(rounds or rounds_of(size, self.slow)), *self.hosts.words()]

    # A shell starts the ranks, each on its own core where there are as many, and waits for them.
    def gloo_command(self, ranks, size, algorithm):
        store = tempfile.mkdtemp(dir=self.folder)
        lines = []
        for rank in range(ranks):
            host = rank * 2 // ranks
            words = self.hosts.inside(host, [self.gloo, rank, ranks, size, rounds_of(size, self.slow), self.hosts.addresses[host],
                                             store, algorithm])
            lines.append(" ".join(map(str, words)) + " & p%d=$!" % rank)
        waits = "; ".join(f"wait $p{rank} || exit 1" for rank in range(ranks))
        return ["sh", "-c", "\n".join(lines) + "\n" + waits]

    def mpi_command(self, ranks, size, algorithm):
        per_host = ranks // 2
        places = ",".join(f"{address}:{per_host}" for address in self.hosts.addresses)
        only = [word for name in ("btl_tcp_if_include", "oob_tcp_if_include") for word in ("--mca", name, "eth0")]
        chosen = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", str(algorithm)]
        # mpirun binds the ranks of both hosts to the same cores, for it takes them for two machines.
        pinned = f"exec taskset -c $((OMPI_COMM_WORLD_RANK % $(nproc --all))) {self.mpi} {size} {rounds_of(size, self.slow)}"
        return self.hosts.inside(0, [
            "mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", str(self.agent), "--mca", "pml", "ob1",
            "--mca", "btl", "tcp,self" if per_host == 1 else "tcp,vader,self", *only, "--bind-to", "none",
            "--mca", "mpi_yield_when_idle", "0" if ranks == 2 else "1", *(chosen if algorithm else []),
            "-host", places, "-np", str(ranks), "sh", "-c", pinned])

    # The commands of the peers, each with the algorithm that is fastest here.
    def peers(self, ranks, size):
        ways = {"Gloo alone": (self.gloo_command, GLOO_ALGORITHMS)}
        if self.mpi:
            ways["Open MPI"] = (self.mpi_command, MPI_ALGORITHMS)
        commands = {}
        for name, (command, algorithms) in ways.items():
            if (name, ranks, size) not in self.best:
                self.best[name, ranks, size] = min(algorithms, key=lambda one: times_of(command(ranks, size, one))[0])
            commands[name] = command(ranks, size, self.best[name, ranks, size])
        return commands

    def measure(self, ways, ranks, size, runs):
        found = {}
        for _ in range(runs):
            commands = {f"ours, {way}": self.ours(way, ranks, size) for way in ways} | self.peers(ranks, size)
            for name, command in commands.items():
                found.setdefault(name, []).append(times_of(command))
        return {name: [sorted(column)[len(column) // 2] for column in zip(*values)] for name, values in found.items()}

    def target(self, text, met):
        if self.slow:  # the cable's speed is everybody's
            return print(f"            {text}", flush=True)
        print(f"    {'met   ' if met else 'MISSED'}  {text}", flush=True)
        self.missed += 0 if met else 1
        return None

    def run(self, runs):
        for ranks, ways in ((2, ["gloo", "two"]), (4, ["gloo", "leader", "scatter"])):
            for name, size in (SLOW_SIZES if self.slow else SIZES).items():
                found = self.measure(ways, ranks, size, runs)
                self.print(ranks, name, size, found)
                self.judge(ranks, size, found)
        self.judge_bytes()

    def print(self, ranks, name, size, found):
        print(f"\n2 hosts, {ranks // 2} rank{'s' if ranks > 2 else ''} each, {name}:  " +
              ",  ".join(f"{who} {median:.1f} us (p90 {p90:.1f})" for who, (median, p90, _) in found.items()))
        best = [f"{who} {MPI_ALGORITHMS[one] if who == 'Open MPI' else one}"
                for (who, of_ranks, of_size), one in self.best.items() if (of_ranks, of_size) == (ranks, size)]
        print(f"    fastest algorithms: {', '.join(best)}")

    # With several ranks on a host, the fastest of our ways counts: the one that the search takes. Two connections are a trial.
    def judge(self, ranks, size, found):
        ours = min(found[f"ours, {way}"][0] for way in ("gloo", "leader", "scatter") if f"ours, {way}" in found)
        gloo = found["Gloo alone"][0] / ours
        self.target(f"at least 1 x Gloo alone: {gloo:.2f} x", gloo >= 1)
        if self.mpi and ranks == 2:
            mpi = found["Open MPI"][0] / ours
            if size == SIZES["4 KB"]:
                print(f"            Open MPI: {mpi:.2f} x")
            else:
                self.target(f"at least 1 x Open MPI: {mpi:.2f} x", mpi >= 1)

    def bytes_of(self, way, size):
        before = self.hosts.bytes_sent()
        times_of(self.ours(way, 4, size, BYTES_ROUNDS))
        return (self.hosts.bytes_sent() - before) / (BYTES_ROUNDS + WARM_UP_AND_CHECK)

    # Of an all-reduce by 2 x 2 ranks: 3 bytes between the hosts for each byte of the buffer in the flat ring, 2 in the hierarchy.
    def judge_bytes(self):
        size = 16 << 20
        flat = self.bytes_of("gloo", size)
        print(f"\n2 x 2 ranks, bytes between the hosts for each byte of the buffer: flat ring {flat / size:.2f}")
        for way in ("leader", "scatter"):
            share = self.bytes_of(way, size) / flat
            self.target(f"{way}: at most 0.68 of the flat ring (two thirds): {share:.3f}", share <= 0.68)


def run(program, slow, can_compile_mpi, runs):
    """Returns the number of missed targets."""
    bench = TwoHosts(program, slow, can_compile_mpi)
    try:
        print(f"2 hosts: network namespaces; TCP congestion control {bench.hosts.congestion_control()}; cable: {bench.hosts.cable}")
        bench.run(runs)
    finally:
        bench.remove()
    return bench.missed
