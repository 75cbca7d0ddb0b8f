"""Three replicas on one PostgreSQL, or one server on its embedded store, and what happens to them."""

import random
import signal
import socket
import threading
import urllib.error

from e2e import Postgres, Server, eventually, grpc

REPLICAS = 3
MAX_LOOKS = 1000  # for more calls, before the next kill
# An operation of a replica that was killed waits no longer than its lease; how often that happens to one here says nothing about it.
# A replica that stops says so a second before, as the manifests have it: gRPC cancels what comes in the moment of its shutdown, and says no reason.
# All that ended is held against its first end, after an hour, too.
FLAGS = (
    *("--drain-delay", "1s", "--operation-lease-seconds", "3", "--max-operation-attempts", "100", "--threads", "2"),
    *("--max-done-operations", "1000000"),
)
# Of a client of all: one that comes back soon is there when the next replica ends.
OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500))


def _free_port():
    """One that nothing listens on, below those the system gives to whoever asks for any."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Replica(Server):
    """A server that has the same address whenever it is started."""

    def __init__(self, *flags):
        self.listen = f"127.0.0.1:{_free_port()}"
        super().__init__(*flags)


class Fleet:
    """The replicas, their database, and what was done to both so far. With the store `sqlite` there is one, and `postgres` is None."""

    def __init__(self, store="postgres"):
        self.postgres = Postgres() if store == "postgres" else None
        where = ("--postgres", self.postgres.new_database()) if self.postgres else ()
        self.replicas = [Replica("--store", store, *where, *FLAGS) for _ in range(REPLICAS if self.postgres else 1)]
        # Clients that reach one replica only; they come back with it.
        self.channels = [replica.new_channel(**{"grpc.max_reconnect_backoff_ms": 500}) for replica in self.replicas]
        self.kills, self.terminations, self.outages = 0, 0, 0
        self.violations = []

    def new_channel(self, service_config):
        """A client of all of them."""
        addresses = ",".join(replica.listen for replica in self.replicas)
        return grpc.insecure_channel(f"ipv4:{addresses}", options=[("grpc.service_config", service_config), *OPTIONS])

    def end_one(self, generator, pause_seconds, kill_share):
        """Kills one, or asks it to stop, and starts it again some time later."""
        at = generator.randrange(len(self.replicas))
        replica = self.replicas[at]
        if replica.process.poll() is not None:
            self.violations.append(f"replica {at} ended by itself with status {replica.process.returncode}")
        elif generator.random() < kill_share:
            replica.kill()
            self.kills += 1
        else:
            self._stop(at)
            self.terminations += 1
        threading.Event().wait(pause_seconds)
        replica.start()

    def restart_database(self, generator):
        """By the thread that started it: PostgreSQL ends when that does."""
        how = generator.choice((signal.SIGINT, signal.SIGQUIT))  # fast, immediate
        self.postgres.process.send_signal(how)
        self.postgres.process.wait()
        threading.Event().wait(generator.uniform(0.5, 1.5))
        self.postgres.start()
        self.outages += 1

    @staticmethod
    def _is_ready(replica):
        try:
            return replica.http("/readyz")[0] == 200
        except urllib.error.URLError:  # not listening yet
            return False

    def await_ready(self):
        for replica in self.replicas:
            try:
                eventually(lambda replica=replica: self._is_ready(replica), f"{replica.listen} is ready")
            except AssertionError as error:
                status = replica.process.poll()
                raise AssertionError(f"{error}; its status: {status}; {self.violations}; it said {replica.errors()[-2000:]}") from error

    def close(self):
        for channel in self.channels:
            channel.close()
        for at, replica in enumerate(self.replicas):
            self._stop(at)
            replica.close()
        if self.postgres:
            self.postgres.close()

    def _stop(self, at):
        replica = self.replicas[at]
        replica.terminate()
        status = replica.wait()
        if status != 0:
            self.violations.append(f"replica {at} answered SIGTERM with status {status}: {replica.errors()[-2000:]}")


class Trouble(threading.Thread):
    """Ends a replica every few seconds, and starts it again.

    With `kills` that is by SIGKILL alone, until there were so many, each after some more calls than the last, and so in the middle of others.
    """

    def __init__(self, fleet, seed, kills, call_count):
        super().__init__(name="trouble")
        self.fleet, self.kills, self.call_count, self.random = fleet, kills, call_count, random.Random(f"trouble {seed}")
        self.over = threading.Event()

    def run(self):
        try:
            while self.fleet.kills != self.kills and self._wait():
                self.fleet.end_one(self.random, self.random.uniform(0.1, 1.5) if self.kills is None else 0, 0.7 if self.kills is None else 1)
        except Exception as error:  # pylint: disable=broad-except
            self.fleet.violations.append(f"a replica did not come back: {error!r}")

    def _wait(self):
        """False once it is over."""
        if self.kills is None:
            return not self.over.wait(self.random.uniform(2, 6))
        enough, looks = self.call_count() + self.random.randrange(1, 30), 0
        # All may wait for what only a server that lives for longer would do.
        while self.call_count() < enough and looks < MAX_LOOKS:
            looks += 1
            if self.over.wait(0.002):
                return False
        return True

    def stop(self):
        self.over.set()
        self.join()
