"""What is measured: a job on a network, with as many restarts as it takes."""

import dataclasses

from job import MODELS

WORKERS = (1, 2, 3, 4, 6, 8)
# A mean of restarts is judged when its standard error is below this share of it, or after so many restarts.
PRECISION = 0.02
MOST_RESTARTS = 30
SEVERAL_WORKERS = (2, 4, 8)
SEVERAL_SERVERS = (2, 3, 4)
# Besides the random one, in which a job is recorded. The models are chains, of which TIC and TAC request what graph order does (testbed_servers_test).
ORDERS = ("graph", "reverse")
# Tensors of up to 19 MB, above most windows that gRPC finds here.
SCALE_OF_LARGE = 8
LARGE = f"{SCALE_OF_LARGE} times as large"
KINDS = (
    "as recorded",
    "started together",
    *(f"{servers} servers" for servers in SEVERAL_SERVERS),
    *(f"{order} order" for order in ORDERS),
    *(f"{servers} servers, graph order" for servers in (2, 4)),
    LARGE,
    f"{LARGE}, 2 servers",
    "one queue for all",
)


@dataclasses.dataclass(frozen=True)
class Point:
    model: str
    workers: int
    servers: int = 1
    scale: int = 1  # of tensors
    download_order: str = "random"
    first_come: bool = False
    together: bool = False
    restarts: int = 2
    most_restarts: int = 2

    @property
    def window(self):
        """Seconds from the origin of the start offsets. Phases last for seconds, so many short restarts tell more than few long ones; of one worker,
        which has no phase, the steps count."""
        if self.scale > 1:
            return (2.0, 12.0)
        return (0.3, 4.3) if self.workers == 1 else (0.3, 1.9)

    @property
    def transfer_order(self):
        """As a scenario calls it: what was requested at random is replayed as it was recorded."""
        return {"random": "RECORDED"}.get(self.download_order, self.download_order.upper())

    @property
    def link_sharing(self):
        if self.first_come:
            return "FIRST_COME"
        return "TURNS"

    @property
    def kind(self):
        kinds = []
        if self.scale > 1:
            kinds.append(LARGE)
        if self.servers > 1:
            kinds.append(f"{self.servers} servers")
        if self.download_order != "random":
            kinds.append(f"{self.download_order} order")
        if self.first_come:
            kinds.append("one queue for all")
        if self.together:
            kinds.append("started together")
        return ", ".join(kinds) or "as recorded"


def _least_restarts(workers):
    """Of one worker two restarts agree within a per cent or two; two to four workers scatter most, by 8 to 18 % of the mean."""
    return {1: 2, 2: 10, 3: 10, 4: 10}.get(workers, 4)


def points(models=MODELS, restarts=None, most_restarts=MOST_RESTARTS, kinds=KINDS):
    """The grid, then what differs from it in one thing, as far as it is of these kinds. restarts: the least of every point with several workers, None: as
    many as they need."""

    def point(model, workers, **changes):
        least = _least_restarts(workers) if workers == 1 or restarts is None else restarts
        return Point(model, workers, restarts=least, most_restarts=max(least, 2 if workers == 1 else most_restarts), **changes)

    grid = [point(model, workers) for model in models for workers in WORKERS]
    grid += [point(model, workers, together=True) for model in models for workers in (2, 4, 8)]
    model = models[0]
    others = [point(model, workers, servers=servers) for servers in SEVERAL_SERVERS for workers in (1, *SEVERAL_WORKERS)]
    others += [point(model, workers, servers=servers, download_order="graph") for servers in (2, 4) for workers in (4, 8)]
    others += [point(model, workers, download_order=order) for order in ORDERS for workers in SEVERAL_WORKERS]
    others += [point(model, workers, scale=SCALE_OF_LARGE) for workers in SEVERAL_WORKERS]
    others += [point(model, workers, scale=SCALE_OF_LARGE, servers=2) for workers in (4, 8)]
    others.append(point(model, 4, first_come=True))
    return [one for one in grid + others if one.kind in kinds]
