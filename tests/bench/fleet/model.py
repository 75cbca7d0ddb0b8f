"""A fleet of replicas before schedulers that ask about their jobs again and again: what they compute, and how long they are waited for.

A scheduler asks about all its jobs at once, every `every` seconds, through a client that goes round the replicas. A job's question changes every `life`
seconds; until then it is the same, so that a replica which has answered it does so again from its cache. Caches are each replica's own: a question is
computed by as many replicas as meet it before it changes. That is why a fleet does not compute less by having more replicas, and what the sizes below
are about. Times are in seconds of one processor.
"""

import heapq
import math
import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    schedulers: int
    jobs: int = 100  # of each scheduler
    every: float = 30.0
    life: float = 600.0
    sticks: bool = False  # a job asks the same replica every time


@dataclass(frozen=True)
class Costs:
    hit: float  # of a replica, for an answer from its cache
    miss: float  # for one that is computed
    spread: float  # standard deviation over mean of the computed ones
    fetch: float = 0.0  # of the database, for a profile that a replica does not have
    fetched: float = 0.0  # fetches from the database a computed answer


@dataclass(frozen=True)
class Fleet:
    replicas: int
    processors: int = 2  # of each replica


def calls_a_second(load):
    return load.schedulers * load.jobs / load.every


def computed_share(load, replicas):
    """Of the calls: those that meet a replica which has not answered the same question, calls being spread evenly at random."""
    asked = load.life / load.every
    if load.sticks:
        return min(1.0, 1 / asked)
    met = replicas * (1 - (1 - 1 / replicas) ** asked) if replicas > 1 else min(1.0, asked)
    return min(1.0, met / asked)


def demand(load, costs, replicas):
    """Processors that are busy, of all replicas together."""
    share = computed_share(load, replicas)
    return calls_a_second(load) * ((1 - share) * costs.hit + share * costs.miss)


def least_replicas(load, costs, processors=2, busy=0.6, most=100_000):
    """The fewest replicas whose processors are busy for at most that share; None where no number is enough."""

    def is_enough(replicas):
        return demand(load, costs, replicas) <= busy * processors * replicas

    replicas = 1
    while not is_enough(replicas):
        replicas *= 2
        if replicas > most:
            return None
    low = replicas // 2  # not enough
    while replicas - low > 1:
        middle = (low + replicas) // 2
        low, replicas = (low, middle) if is_enough(middle) else (middle, replicas)
    return replicas


def database_busy(load, costs, replicas):
    """Processors of the database that are busy."""
    return calls_a_second(load) * computed_share(load, replicas) * costs.fetched * costs.fetch


def shared_job(alone, replicas, lead=1.0):
    """(seconds until it is done, seconds of all processors) of a job that takes one processor `alone` seconds, where each replica gives it one.

    After the `lead` its parts are anyone's; whoever helps makes the lead, too, to come to the same place.
    """
    if replicas == 1 or alone <= lead:
        return alone, alone
    return lead + (alone - lead) / replicas, alone + lead * (replicas - 1)


def service_times(costs, draw):
    """Endless times of computed answers: lognormal, with the mean and the spread measured."""
    variance = math.log1p(costs.spread**2)
    while True:
        yield draw.lognormvariate(math.log(costs.miss) - variance / 2, math.sqrt(variance)) if costs.spread else costs.miss


def waits(arrivals, service, servers):
    """For each of the ascending arrivals, how long until it has been served: in order of arrival, by whichever server is free first."""
    free = [0.0] * servers
    for arrival in arrivals:
        begin = max(arrival, heapq.heappop(free))
        end = begin + next(service)
        heapq.heappush(free, end)
        yield end - arrival


def simulate(load, costs, fleet, seconds, seed=1):
    """Seconds until each computed answer, of one replica for so long, in ascending order.

    The questions of a scheduler come at once, so they queue even where the replica is hardly busy. What the hits take is taken from every processor alike.
    """
    draw = random.Random(seed)
    share = computed_share(load, fleet.replicas)
    arrivals = []
    for _ in range(load.schedulers):
        at = draw.uniform(0, load.every)
        while at < seconds:
            # Each of its jobs comes here with a chance of one in so many replicas, and has to be computed with another.
            arrivals.extend([at] * _binomial(draw, load.jobs, share / fleet.replicas))
            at += load.every
    hits = calls_a_second(load) * (1 - share) * costs.hit / fleet.replicas / fleet.processors
    slowed = Costs(hit=costs.hit, miss=costs.miss / max(1e-9, 1 - hits), spread=costs.spread)
    return sorted(waits(sorted(arrivals), service_times(slowed, draw), fleet.processors))


def percentile(ascending, share):
    """None of nothing."""
    return ascending[min(len(ascending) - 1, math.ceil(share * len(ascending)) - 1)] if ascending else None


def _binomial(draw, count, chance):
    return sum(draw.random() < chance for _ in range(count))
