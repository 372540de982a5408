"""Hosts that this machine plays: two network namespaces with a cable (veth) between them, which go with the object."""
import os
import pathlib
import shutil
import subprocess
import sys

LATE_CABLE = pathlib.Path(__file__).parent / "late_cable.py"
RATE = "tbf rate 1gbit burst 256kb latency 50ms"
DELAY_MS = 1


def missing():
    """What is missing for them here, in words; None when they can be made."""
    tools = [tool for tool in ("ip", "tc") if not shutil.which(tool)]
    if tools:
        return f"{' and '.join(tools)} (apt-get install iproute2)"
    if os.geteuid() != 0:
        return "root"
    name = f"fleetrun-bench-{os.getpid()}-try"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"network namespaces ({done.stderr.strip()})"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return None


class Hosts:
    """`slow`: the cable carries 1 Gbit/s, and a packet takes 1 ms each way."""

    def __init__(self, slow=False):
        self.cable = f"1 Gbit/s, {DELAY_MS} ms each way" if slow else "as fast as the processor"
        self.carrier = None  # the process that delays packets
        self.names = [f"fleetrun-bench-{os.getpid()}-{place}" for place in "ab"]
        self.addresses = ["10.78.0.1", "10.78.0.2"]
        try:
            self.build(slow)
        except BaseException:
            self.remove()
            raise

    def build(self, slow):
        for name in self.names:
            self.ip("netns", "add", name)
        if slow:
            self.carrier = self.start_carrier()
        else:
            self.ip("-n", self.names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self.names[1])
        for name, address in zip(self.names, self.addresses):
            self.ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            self.ip("-n", name, "link", "set", "eth0", "up")
            self.ip("-n", name, "link", "set", "lo", "up")
            if slow:
                subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", *RATE.split()], check=True)

    def start_carrier(self):
        carrier = subprocess.Popen([sys.executable, LATE_CABLE, *self.names, str(DELAY_MS)], stdout=subprocess.PIPE)
        if carrier.stdout.readline() != b"ready\n":
            sys.exit("bench/collectives: --slow-link needs /dev/net/tun, and tbf of tc")
        return carrier

    def remove(self):
        if self.carrier:
            self.carrier.terminate()
            self.carrier.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def words(self):
        """As bench_all_reduce takes them."""
        return [f"{name}={address}" for name, address in zip(self.names, self.addresses)]

    def inside(self, host, command):
        return ["ip", "netns", "exec", self.names[host], *command]

    def bytes_sent(self):
        """By both hosts together, since they exist, headers included."""
        return sum(int(subprocess.run(self.inside(host, ["cat", "/sys/class/net/eth0/statistics/tx_bytes"]), capture_output=True,
                                      check=True).stdout) for host in (0, 1))

    def congestion_control(self):
        command = self.inside(0, ["cat", "/proc/sys/net/ipv4/tcp_congestion_control"])
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def write_agent(self, folder):
        """What mpirun calls in place of ssh: AGENT HOST COMMAND. The second host has a name of its own, or Open MPI takes both for one."""
        agent = pathlib.Path(folder) / "agent"
        agent.write_text(f'#!/bin/sh\nshift\nexec ip netns exec {self.names[1]} unshare --uts sh -c "hostname second-host; $*"\n',
                         encoding="utf-8")
        agent.chmod(0o755)
        return agent
