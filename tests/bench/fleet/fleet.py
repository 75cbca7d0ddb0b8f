"""What a fleet needs: measures a replica here, holds the model (model.py) to two replicas that share a database, and prints what 10, 100 and 1,000
schedulers need; and what replicas that share a long job save.

Run by `./dev bench --fleet`, which sets STEPCASTD and STEPCAST. Needs PostgreSQL, python3-grpcio and protoc. A processor's time counts, not a clock's,
but for the spread of the answers' times; so other work on the machine hardly shows.
"""

import argparse
import atexit
import glob
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import grpc

import model

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SAMPLE = os.path.join(TOP, "tests", "data", "testbed", "alexnet_64.profile.json")
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_SECONDS = 300


class Replica:
    """A running stepcastd on a PostgreSQL database."""

    def __init__(self, conninfo, *flags):
        self.process = subprocess.Popen(
            [os.environ["STEPCASTD"], "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--store", "postgres", "--postgres", conninfo, *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        atexit.register(self.close)
        self.address = self.process.stdout.readline().split()[-1]
        self.pages = self.process.stdout.readline().split()[-1]

    def cpu(self):
        return cpu_of(self.process.pid)

    def computed(self):
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{self.pages}/metrics", timeout=PATIENCE_SECONDS) as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith('stepcast_predictions_total{') and 'code="OK"' in line)

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=PATIENCE_SECONDS)


class Database:
    """A PostgreSQL server in a temporary folder, reached by a socket there; as root it runs as the user postgres."""

    def __init__(self):
        self.programs = max(glob.glob("/usr/lib/postgresql/*/bin"))
        self.folder = tempfile.mkdtemp(prefix="stepcast-fleet-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(self.folder, self.user)
        data = os.path.join(self.folder, "data")
        self._run("initdb", "--no-sync", "--auth=trust", "--username=stepcast", "--pgdata", data)
        self._run("pg_ctl", "-w", "-D", data, "-o", f"-k {self.folder} -c listen_addresses=", "-l", os.path.join(self.folder, "log"), "start")
        atexit.register(self._run, "pg_ctl", "-w", "-D", data, "-m", "immediate", "stop")
        with open(os.path.join(data, "postmaster.pid"), encoding="utf-8") as file:
            self.pid = int(file.readline())
        self.conninfo = f"host={self.folder} user=stepcast dbname=postgres"

    def _run(self, program, *arguments):
        subprocess.run([os.path.join(self.programs, program), *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, user=self.user)

    def cpu(self):
        """Of all its processes that are running; those of connections do as long as the replicas."""
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="utf-8") as file:
            return cpu_of(self.pid) + sum(cpu_of(int(child)) for child in file.read().split())


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def stepcast(replica, *arguments):
    done = subprocess.run(
        [os.environ["STEPCAST"], "--server", replica.address, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def load(replica, *flags):
    """(calls answered, report of the one measurement) of `stepcast bench`."""
    report = json.loads(stepcast(replica, "bench", "profiles/job", "--method", "recommend", "--output", "json", *flags))
    (step,) = report["steps"]
    return int(step["allCodes"]["OK"]) + int(report["checkCalls"]), step


def measure(replica, database, seconds):
    """The costs of an answer, from closed loops that ask the same and always something else."""
    duration = ["--duration", f"{seconds}s", "--warmup", "1s"]
    load(replica, "--concurrency", "1", "--duration", "100ms", "--warmup", "0")  # from now on it is known
    before = replica.cpu()
    calls, _ = load(replica, "--concurrency", "8", *duration)
    hit = (replica.cpu() - before) / calls

    before, stored = replica.cpu(), database.cpu()
    calls, step = load(replica, "--concurrency", "1", "--vary", "100000000", "--seed", "1000", "--deadline", "60s", *duration)
    latency = step["latencyMs"]
    # Of a lognormal time nine tenths are below exp(1.2816 sigma) times the middle one.
    sigma = model.math.log(latency["p90"] / latency["p50"]) / 1.2816
    return model.Costs(
        hit=hit,
        miss=(replica.cpu() - before) / calls,
        spread=model.math.sqrt(model.math.expm1(sigma**2)),
        fetch=(database.cpu() - stored) / calls,
        fetched=1.0,
    )


def messages():
    """The module of the request's message, made by protoc."""
    folder = tempfile.mkdtemp(prefix="stepcast-fleet-protos-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    protos = [os.path.relpath(path, os.path.join(TOP, "proto")) for path in glob.glob(os.path.join(TOP, "proto", "stepcast", "v1", "*.proto"))]
    others = [os.path.relpath(path, os.path.join(TOP, "proto")) for path in glob.glob(os.path.join(TOP, "proto", "google", "**", "*.proto"), recursive=True)]
    subprocess.run(["protoc", "-I", os.path.join(TOP, "proto"), "-I", "/usr/include", "--python_out", folder, *protos, *others], check=True)
    sys.path.insert(0, folder)
    for module in ("stepcast.v1.job_service_pb2", "google.longrunning.operations_pb2"):
        __import__(module)
    return sys.modules["stepcast.v1.recommendation_pb2"]


def play(replicas, request_of, questions, asked, draw):
    """Asks each question so often, in turn, each time a replica drawn at random; (processor's seconds, computed answers)."""
    channels = [grpc.insecure_channel(replica.address) for replica in replicas]
    calls = [channel.unary_unary("/stepcast.v1.PredictionService/RecommendWorkers") for channel in channels]
    cpu, computed = sum(replica.cpu() for replica in replicas), sum(replica.computed() for replica in replicas)
    for _ in range(asked):
        for question in range(questions):
            draw.choice(calls)(request_of(question), timeout=PATIENCE_SECONDS)
    for channel in channels:
        channel.close()
    return sum(replica.cpu() for replica in replicas) - cpu, sum(replica.computed() for replica in replicas) - computed


def hold(costs, replicas, questions, asked):
    """Prints what the model says of so many replicas beside what they do; how far off its processor's time is."""
    recommendation = sys.modules["stepcast.v1.recommendation_pb2"]

    def request_of(question):
        request = recommendation.RecommendWorkersRequest(profile="profiles/job")
        request.options.seed = 5_000_000 + 100 * len(replicas) + question
        return request.SerializeToString()

    used, computed = play(replicas, request_of, questions, asked, random.Random(len(replicas)))
    calls = questions * asked
    share = model.computed_share(model.Load(schedulers=1, jobs=questions, every=1, life=asked), len(replicas))
    said = calls * ((1 - share) * costs.hit + share * costs.miss)
    print(f"| {len(replicas)} | {calls} | {calls * share:.0f} | {computed:.0f} | {said:.2f} | {used:.2f} | {said / used - 1:+.1%} |")


def start_sweep(replica):
    """The name of a long job: a recommendation of up to 24 workers, in long runs."""
    jobs, recommendation = sys.modules["stepcast.v1.job_service_pb2"], sys.modules["stepcast.v1.recommendation_pb2"]
    request = recommendation.RecommendWorkersRequest(profile="profiles/job")
    request.constraints.max_workers = 24
    request.options.steps_per_worker, request.options.replications = 8000, 20
    with grpc.insecure_channel(replica.address) as channel:
        reply = channel.unary_unary("/stepcast.v1.JobService/StartJob")(jobs.StartJobRequest(recommend_workers=request).SerializeToString())
    return sys.modules["google.longrunning.operations_pb2"].Operation.FromString(reply).name


def answer_of(replica, name):
    """A digest of what a job comes to, without the time that it took."""
    operations, recommendation = sys.modules["google.longrunning.operations_pb2"], sys.modules["stepcast.v1.recommendation_pb2"]
    operation = operations.Operation()
    with grpc.insecure_channel(replica.address) as channel:
        wait = channel.unary_unary("/google.longrunning.Operations/WaitOperation")
        while not operation.done:
            operation = operations.Operation.FromString(wait(operations.WaitOperationRequest(name=name).SerializeToString()))
    answer = recommendation.RecommendWorkersResponse()
    if not operation.response.Unpack(answer):
        raise RuntimeError(str(operation.error))
    answer.simulation.ClearField("engine_seconds")
    return hashlib.sha256(answer.SerializeToString(deterministic=True)).hexdigest()[:12]


def share(database, counts=(1, 2, 4)):
    """Prints what a long job takes of so many replicas of one thread each, and what the model says."""
    print("\n| replicas | done after, model | busiest replica, processor s | processor s, model | measured | here, s | answer |")
    print("|---|---|---|---|---|---|---|")
    alone = None
    for count in counts:
        replicas = [Replica(database.conninfo, "--threads", "1") for _ in range(count)]
        before, began = [replica.cpu() for replica in replicas], time.monotonic()
        digest = answer_of(replicas[0], start_sweep(replicas[0]))
        here = time.monotonic() - began
        used = [replica.cpu() - cpu for replica, cpu in zip(replicas, before)]
        alone = alone or max(used)
        done, all_of_them = model.shared_job(alone, count)
        print(f"| {count} | {done:.1f} s | {max(used):.1f} | {all_of_them:.1f} | {sum(used):.1f} | {here:.1f} | {digest} |")
        for replica in replicas:
            replica.close()


def table(costs, options):
    print("\n| schedulers | a job asks | calls/s | computed/s | processors | replicas | busy | a computed answer, half / 99 % within | database busy |")
    print("|---|---|---|---|---|---|---|---|---|")
    for schedulers, sticks in ((schedulers, sticks) for schedulers in options.schedulers for sticks in (False, True)):
        load_of = model.Load(schedulers=schedulers, jobs=options.jobs, every=options.every, life=options.life, sticks=sticks)
        asks = "always the same replica" if sticks else "any replica"
        replicas = model.least_replicas(load_of, costs, options.processors)
        if replicas is None:
            print(f"| {schedulers} | {asks} | {model.calls_a_second(load_of):.0f} | no number of replicas is enough |")
            continue
        fleet = model.Fleet(replicas=replicas, processors=options.processors)
        took = model.simulate(load_of, costs, fleet, seconds=max(600, 200_000 / model.calls_a_second(load_of)))
        share, needed = model.computed_share(load_of, replicas), model.demand(load_of, costs, replicas)
        print(
            f"| {schedulers} | {asks} | {model.calls_a_second(load_of):.0f} | {model.calls_a_second(load_of) * share:.1f} | {needed:.2f} | {replicas} |"
            f" {needed / replicas / options.processors:.0%} | {model.percentile(took, 0.5):.2g} / {model.percentile(took, 0.99):.2g} s |"
            f" {model.database_busy(load_of, costs, replicas):.1%} |"
        )


def main():
    parser = argparse.ArgumentParser(prog="./dev bench --fleet", description="What a fleet of replicas needs, measured on one and two of them here.")
    parser.add_argument("--schedulers", type=lambda text: [int(n) for n in text.split(",")], default=[10, 100, 1000], help="default: 10,100,1000")
    parser.add_argument("--jobs", type=int, default=100, help="of each scheduler; default: %(default)s")
    parser.add_argument("--every", type=float, default=30, help="seconds between its questions about all of them; default: %(default)s")
    parser.add_argument("--life", type=float, default=600, help="seconds until a job's question is another; default: %(default)s")
    parser.add_argument("--processors", type=int, default=2, help="of a replica; default: %(default)s")
    parser.add_argument("--seconds", type=int, default=5, help="of each measurement; default: %(default)s")
    options = parser.parse_args()
    database = Database()
    replicas = [Replica(database.conninfo, "--threads", "2") for _ in range(2)]
    stepcast(replicas[0], "profile", "upload", SAMPLE, "--id", "job")
    costs = measure(replicas[0], database, options.seconds)
    print(f"an answer from the cache: {costs.hit * 1e6:.0f} us of a processor; a computed one: {costs.miss * 1e3:.1f} ms, spread {costs.spread:.2f};")
    print(f"a profile from the database: {costs.fetch * 1e6:.0f} us of its processor\n")
    print("| replicas | calls | computed, model | measured | processor s, model | measured | model is off by |")
    print("|---|---|---|---|---|---|---|")
    messages()
    for count in (1, 2):
        hold(costs, replicas[:count], questions=100, asked=20)
    table(costs, options)
    for replica in replicas:
        replica.close()
    share(database)


if __name__ == "__main__":
    main()
