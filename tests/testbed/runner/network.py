"""Network namespaces around a bridge on one machine, over links shaped to one rate each way: a star of parameter servers and workers, or a ring of workers.

Every server's link is shared fairly by byte among the workers (one leaf a worker), unless it is to serve whoever comes first (one queue for all).
With several servers every worker's own link is shaped too, with one leaf a server: then it may be what limits.
"""

import os
import re
import subprocess

# Above the 64 KiB of a segment offload, or leaves would share by packet instead of by byte.
QUANTUM_BYTES = 70_000
# Bytes that a link that was idle may send at once above its rate. Less, and time that the kernel's timers lose is lost to the link.
BURST_BYTES = 16_384
# Deeper than all that is ever under way, so that nothing is dropped.
QUEUE_BYTES = 8_000_000
# Payload of a 1514-byte Ethernet frame that carries TCP with time stamps; what a byte of the link is worth.
PAYLOAD_SHARE = 1448 / 1514


def payload_bytes_per_second(link_bits_per_second):
    return link_bits_per_second / 8 * PAYLOAD_SHARE


def missing():
    """What this machine lacks for a Network, in words; empty where nothing."""
    if os.geteuid() != 0:
        return "root rights (network namespaces)"
    name = f"sct{os.getpid()}-try"
    try:
        _run("ip", "netns", "add", name)
    except (OSError, subprocess.CalledProcessError) as fault:
        return f"network namespaces ({fault})"
    try:
        _run("ip", "-n", name, "link", "add", "try0", "type", "veth", "peer", "name", "try1")
        _run("ip", "-n", name, "link", "add", "try2", "type", "bridge")
        _run("tc", "-n", name, "qdisc", "add", "dev", "try0", "root", "handle", "1:", "htb")
    except (OSError, subprocess.CalledProcessError) as fault:
        return f"veth, bridges or the htb queue ({fault})"
    finally:
        _run("ip", "netns", "del", name)
    return ""


def remove_stale():
    """Removes the namespaces of runs that were killed."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    for name in (line.split()[0] for line in listed.splitlines() if line):
        owner = re.match(r"sct(\d+)-", name)
        if owner and not os.path.exists(f"/proc/{owner[1]}"):
            _run("ip", "netns", "del", name)


class Network:
    """Namespaces `sct<pid>-*`, gone when the `with` block ends."""

    def __init__(self, servers, workers, bits_per_second=1_000_000_000, first_come=False):
        self._servers = servers
        self._workers = workers
        self._rate = bits_per_second
        self._first_come = first_come
        self._prefix = f"sct{os.getpid()}-"
        self._made = []

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def server_address(self, server):
        return f"10.77.0.{1 + server}"

    def worker_address(self, worker):
        return f"10.77.0.{101 + worker}"

    def server_namespace(self, server):
        return f"{self._prefix}s{server}"

    def worker_namespace(self, worker):
        return f"{self._prefix}w{worker}"

    def tcp_timeouts(self):
        """Retransmission timeouts of all nodes so far."""
        return sum(_counter(namespace, "TCPTimeouts") for namespace in self._made[1:])

    def _make(self):
        bridge = f"{self._prefix}b"
        self._add_namespace(bridge)
        _ip(bridge, ["link add hub type bridge", "link set hub type bridge stp_state 0", "link set hub up"])
        for server in range(self._servers):
            self._add_node(self.server_namespace(server), f"s{server}", self.server_address(server))
        for worker in range(self._workers):
            self._add_node(self.worker_namespace(worker), f"w{worker}", self.worker_address(worker))
        workers = [self.worker_address(worker) for worker in range(self._workers)]
        servers = [self.server_address(server) for server in range(self._servers)]
        for server in range(self._servers):
            self._shape(self.server_namespace(server), "eth0", "dst", workers)
            self._shape(bridge, f"s{server}", "src", workers)
        if self._servers > 1:
            for worker in range(self._workers):
                self._shape(self.worker_namespace(worker), "eth0", "dst", servers)
                self._shape(bridge, f"w{worker}", "src", servers)

    def _add_namespace(self, name):
        _run("ip", "netns", "add", name)
        self._made.append(name)

    def _add_node(self, namespace, port, address):
        bridge = self._made[0]
        self._add_namespace(namespace)
        _ip(bridge, [f"link add {port} type veth peer name eth0 netns {namespace}", f"link set {port} master hub up"])
        _ip(namespace, ["link set lo up", "link set eth0 up", f"address add {address}/24 dev eth0"])
        # A queue of eight workers' bursts outlasts the usual 200 ms, and a timeout would be taken for a loss.
        _ip(namespace, ["route change 10.77.0.0/24 dev eth0 rto_min 2s"])
        # Reno shares a fair queue evenly from the first byte; others probe.
        _run("ip", "netns", "exec", namespace, "sysctl", "-q", "-w", "net.ipv4.tcp_congestion_control=reno")

    def _shape(self, namespace, device, field, addresses):
        rate = f"{self._rate}bit"
        lines = [
            f"qdisc add dev {device} root handle 1: htb default 1",
            f"class add dev {device} parent 1: classid 1:ffff htb rate {rate} ceil {rate} burst {BURST_BYTES} cburst {BURST_BYTES} quantum {QUANTUM_BYTES}",
            # Traffic of nobody: address resolution.
            f"class add dev {device} parent 1:ffff classid 1:1 htb rate 1mbit ceil {rate} quantum {QUANTUM_BYTES}",
        ]
        leaves = [(2, addresses)] if self._first_come else [(2 + i, [address]) for i, address in enumerate(addresses)]
        # Half of the link is guaranteed, which serves a worker that was idle before the others; the rest is lent in turns.
        share = max(1, self._rate // (2 * len(leaves)))
        for leaf, members in leaves:
            lines += [
                f"class add dev {device} parent 1:ffff classid 1:{leaf:x} htb rate {share}bit ceil {rate} burst {BURST_BYTES} cburst {BURST_BYTES} quantum {QUANTUM_BYTES}",
                f"qdisc add dev {device} parent 1:{leaf:x} handle {leaf + 15:x}: bfifo limit {QUEUE_BYTES * len(members)}",
            ]
            lines += [f"filter add dev {device} parent 1: protocol ip prio 1 u32 match ip {field} {member}/32 flowid 1:{leaf:x}" for member in members]
        subprocess.run(["tc", "-n", namespace, "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)

    def _remove(self):
        for namespace in reversed(self._made):
            subprocess.run(["ip", "netns", "del", namespace], check=False)
        self._made.clear()


class Ring:
    """Workers that each send to one and receive from one: one queue for each direction of each worker's link. Namespaces `sct<pid>-*`, gone when the
    `with` block ends."""

    def __init__(self, workers, bits_per_second=1_000_000_000):
        self._workers = workers
        self._rate = bits_per_second
        self._bridge = f"sct{os.getpid()}-b"
        self._made = []

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def address(self, worker):
        return f"10.77.0.{101 + worker}"

    def namespace(self, worker):
        return f"sct{os.getpid()}-w{worker}"

    def set_rate(self, bits_per_second):
        """REQUIRES: nothing is under way."""
        self._rate = bits_per_second
        for worker in range(self._workers):
            self._shape(worker, "change")

    def tcp_timeouts(self):
        """Retransmission timeouts of all workers so far."""
        return sum(_counter(namespace, "TCPTimeouts") for namespace in self._made[1:])

    def _make(self):
        for namespace in [self._bridge, *map(self.namespace, range(self._workers))]:
            _run("ip", "netns", "add", namespace)
            self._made.append(namespace)
        _ip(self._bridge, ["link set lo up", "link add hub type bridge", "link set hub type bridge stp_state 0", "link set hub up"])
        for worker in range(self._workers):
            namespace = self.namespace(worker)
            _ip(self._bridge, [f"link add w{worker} type veth peer name eth0 netns {namespace}", f"link set w{worker} master hub up"])
            _ip(namespace, ["link set lo up", "link set eth0 up", f"address add {self.address(worker)}/24 dev eth0"])
            # As for the star.
            _ip(namespace, ["route change 10.77.0.0/24 dev eth0 rto_min 2s"])
            _run("ip", "netns", "exec", namespace, "sysctl", "-q", "-w", "net.ipv4.tcp_congestion_control=reno")
            self._shape(worker, "add")

    def _shape(self, worker, verb):
        for namespace, device in ((self.namespace(worker), "eth0"), (self._bridge, f"w{worker}")):
            rate = f"rate {self._rate}bit ceil {self._rate}bit burst {BURST_BYTES} cburst {BURST_BYTES} quantum {QUANTUM_BYTES}"
            lines = [f"class {verb} dev {device} parent 1: classid 1:2 htb {rate}"]
            if verb == "add":
                lines = [f"qdisc add dev {device} root handle 1: htb default 2", *lines, f"qdisc add dev {device} parent 1:2 handle 12: bfifo limit {2 * QUEUE_BYTES}"]
            subprocess.run(["tc", "-n", namespace, "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)

    def _remove(self):
        for namespace in reversed(self._made):
            subprocess.run(["ip", "netns", "del", namespace], check=False)
        self._made.clear()


def _run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


def _ip(namespace, lines):
    subprocess.run(["ip", "-n", namespace, "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True, capture_output=True)


def _counter(namespace, name):
    text = subprocess.run(["ip", "netns", "exec", namespace, "cat", "/proc/net/netstat", "/proc/net/snmp"], capture_output=True, text=True, check=True).stdout
    lines = text.splitlines()
    for heads, values in zip(lines, lines[1:]):
        if heads.split(":")[0] == values.split(":")[0] and name in heads.split():
            return int(values.split()[heads.split().index(name)])
    return 0
