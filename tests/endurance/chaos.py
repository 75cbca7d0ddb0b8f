"""Replicas are killed and the database goes away while clients work: nothing acknowledged is lost, and nothing ends twice.

Run it as `./dev endure chaos`.
"""

import argparse
import random
import sys
import time

from caller import Caller
from chaos_client import ChaosClient
from e2e import comparable, eventually, job_service_pb2, prediction_grpc
from fleet import Fleet, Trouble
from ledger import Ledger
from observer import Observer

CLIENTS = 6
# For what was started to end; each takes seconds at most.
SETTLE_SECONDS = 300
# The name of the unary method and of its reply, by the name of the field of StartJobRequest.
UNARY = {each: "".join(part.title() for part in each.split("_")) for each in ("predict_throughput", "recommend_workers", "optimize_order", "allocate_workers")}

# Each of which succeeds before the trouble is over.
METHODS = ("CreateProfile", "GetProfile", "PredictThroughput", "DeleteProfile", "StartJob", "WaitOperation")


class Chaos:
    """One run, of so many seconds, or with `kills` of so many SIGKILLs. `violations` is empty where all promises were kept."""

    def __init__(self, seconds, seed, kills=None, store="postgres"):
        self.seconds, self.seed, self.kills = seconds, seed, kills
        self.fleet, self.caller, self.ledger = Fleet(store), Caller(), Ledger()
        self.clients = [ChaosClient(number, seed, self.fleet, self.caller, self.ledger) for number in range(CLIENTS)]
        self.observer = Observer(self.fleet, self.ledger, seed)
        self.settled_seconds, self.compared = 0, 0

    @property
    def violations(self):
        return self.fleet.violations + self.ledger.violations

    def run(self):
        try:
            self.clients[0].keep()
            self._trouble()
            self._settle()
            self.observer.check_everything()
            self._compare_with_unary()
        finally:
            self.caller.give_up()
            for client in self.clients:
                client.stop()
                if client.ident:
                    client.join()
                client.channel.close()
            self.fleet.close()

    def _trouble(self):
        """In the middle of it the database is restarted, perhaps while a replica is away: not where so many kills are asked for."""
        began = time.monotonic()
        trouble = Trouble(self.fleet, self.seed, self.kills, self.caller.total)
        for thread in (*self.clients, self.observer, trouble):
            thread.start()
        if self.kills is not None:
            trouble.join()
            self.seconds = round(time.monotonic() - began)
        else:
            time.sleep(self.seconds / 2)
            if self.fleet.postgres:
                self.fleet.restart_database(random.Random(f"database {self.seed}"))
            time.sleep(self.seconds / 2)
        # A busy machine may have done little of it yet.
        eventually(lambda: self.fleet.kills + self.fleet.terminations > 0 and all(self.caller.calls[method] for method in METHODS), "a replica ended, and each method succeeded")
        trouble.stop()

    def _settle(self):
        """Everybody ends what he does, and every operation ends."""
        began = time.monotonic()
        for client in self.clients:
            client.stop()
        for client in self.clients:
            client.join()
        self.observer.stop()
        self.fleet.await_ready()

        end = time.monotonic() + SETTLE_SECONDS
        while self.ledger.open_operations() and time.monotonic() < end:
            self.observer.look_for_ends()
        for name in self.ledger.open_operations():
            self.ledger.broken(f"{name} has no end {SETTLE_SECONDS} s after the last trouble")
        self.settled_seconds = time.monotonic() - began

    def _compare_with_unary(self):
        channel = self.fleet.channels[random.Random(self.seed).randrange(len(self.fleet.channels))]
        predictions = prediction_grpc.PredictionServiceStub(channel)
        for name, operation in self.ledger.ends.items():
            request = self.ledger.requests[name]
            kind = request.WhichOneof("computation")
            computation = getattr(request, kind)
            if operation.WhichOneof("result") != "response":
                self.ledger.broken(f"{name} ended with an error: {operation.error}")
                continue
            expected, _ = self.caller.call(UNARY[kind], getattr(predictions, UNARY[kind]), computation)
            reply = type(expected)()
            if not operation.response.Unpack(reply) or comparable(reply) != comparable(expected):
                self.ledger.broken(f"{name} has another answer than {UNARY[kind]}:\n{operation.response}\n{expected}")
            self.compared += 1

    def report(self):
        """What happened, a line each."""
        ledger, caller, fleet = self.ledger, self.caller, self.fleet
        yield f"{self.seconds} s, seed {self.seed}: {fleet.kills} replicas killed, {fleet.terminations} stopped, database restarted {fleet.outages} times"
        yield f"profiles: {len(ledger.digests)} there, {len(ledger.deleted)} deleted; {len(ledger.answers)} different predictions"
        again = sum(_attempts(operation) > 1 for operation in ledger.ends.values())
        yield f"operations: {len(ledger.requests)} started, {len(ledger.ends)} ended, {again} of them after more than one attempt; looked at {ledger.observations} times"
        yield f"            {self.compared} compared with the unary answer; all ended {self.settled_seconds:.1f} s after the last trouble"
        for method in sorted(caller.calls):
            yield f"{method:20} {caller.calls[method]:7} calls succeeded, {caller.repeated[method]:5} of them repeated by the client"
        for (method, code, reason), count in sorted(caller.errors.items()):
            yield f"{method:20} {count:7} times {code} {reason}"
        yield from (f"VIOLATION: {violation}" for violation in self.violations)
        yield f"{len(self.violations)} violations"


def _attempts(operation):
    metadata = job_service_pb2.JobMetadata()
    operation.metadata.Unpack(metadata)
    return metadata.attempts


def main():
    parser = argparse.ArgumentParser(prog="./dev endure chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=180, help="of trouble; default: %(default)s")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000), help="of who is ended when, and who asks what; default: any")
    parser.add_argument("--kills", type=int, help="end after so many SIGKILLs, several a second, instead of after --seconds; nothing else is restarted then")
    parser.add_argument("--store", choices=("postgres", "sqlite"), default="postgres", help="sqlite: one server on its embedded store; default: %(default)s")
    options = parser.parse_args()
    if min(options.seconds, options.kills or 1) < 1 or options.kills == 0:
        parser.error("--seconds and --kills are 1 or more")
    chaos = Chaos(options.seconds, options.seed, options.kills, options.store)
    chaos.run()
    for line in chaos.report():
        print(line, flush=True)
    return 1 if chaos.violations else 0


if __name__ == "__main__":
    sys.exit(main())
