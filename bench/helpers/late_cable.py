"""A cable that delays each packet, for a kernel without netem: eth0 of two network namespaces are TUN devices, and this process carries
what one sends to the other.

late_cable.py NAMESPACE NAMESPACE DELAY_MS    prints "ready" when both devices exist; they go when the process ends
"""
import collections
import contextlib
import ctypes
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF, TUNSETVNETHDRSZ, TUNSETOFFLOAD = 0x400454CA, 0x400454D8, 0x400454D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
CHECKSUMS_AND_SEGMENTS = 0x01 | 0x02 | 0x04  # TUN_F_CSUM, _TSO4, _TSO6: packets of up to 64 KiB, as over veth
LARGEST = 66000  # bytes
AT_ONCE = 64  # packets read in a row, before it looks which ones are due


def eth0_of(namespace):
    """A new TUN device named eth0 in that namespace."""
    with open(f"/run/netns/{namespace}", "rb") as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), 0x40000000) != 0:  # CLONE_NEWNET
            raise OSError(ctypes.get_errno(), f"entering {namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
    fcntl.ioctl(device, TUNSETVNETHDRSZ, struct.pack("i", 10))
    fcntl.ioctl(device, TUNSETOFFLOAD, CHECKSUMS_AND_SEGMENTS)
    return device


def carry(devices, delay):
    other = {devices[0]: devices[1], devices[1]: devices[0]}
    under_way = collections.deque()  # (when it is due, where it goes, packet)
    while True:
        wait = max(under_way[0][0] - time.monotonic(), 0) if under_way else None
        readable, _, _ = select.select(devices, [], [], wait)
        for device in readable:
            try:
                for _ in range(AT_ONCE):
                    under_way.append((time.monotonic() + delay, other[device], os.read(device, LARGEST)))
            except BlockingIOError:
                pass
        while under_way and under_way[0][0] <= time.monotonic():
            _, device, packet = under_way.popleft()
            with contextlib.suppress(OSError):  # a device that is not up drops it
                os.write(device, packet)


def main():
    devices = [eth0_of(namespace) for namespace in sys.argv[1:3]]
    os.nice(-10)  # programs that spin while they wait shall not delay it more
    print("ready", flush=True)
    try:
        carry(devices, float(sys.argv[3]) / 1000)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
