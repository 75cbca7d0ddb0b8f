"""Runs of jobs in layouts (shared/data/layouts, shared/data/pp) against predictions through the command line; each skips where its data is not at hand.

The times of such runs are means over many steps of devices that wait for each other, so predictions repeat them as they are (--as-recorded).
"""

import collections
import csv
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile
import unittest

STEPCAST = os.environ["STEPCAST"]
DATA = pathlib.Path(os.environ.get("STEPCAST_SHARED_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data")) / "layouts"


def stepcast(*arguments, text=""):
    done = subprocess.run([STEPCAST, *map(str, arguments)], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


def predicted(*arguments):
    [answer] = json.loads(stepcast("predict", *arguments, "--as-recorded", "--output", "json"))["predictions"]
    return answer


def rows_of(name):
    with open(DATA / name, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def percent(errors):
    sizes = sorted(map(abs, errors))
    return (
        f"{len(sizes)} runs: mean {100 * statistics.fmean(sizes):.1f} %, median {100 * statistics.median(sizes):.1f} %, "
        f"90th percentile {100 * sizes[int(0.9 * (len(sizes) - 1))]:.1f} %, worst {100 * sizes[-1]:.1f} %"
    )


class PublishedTest(unittest.TestCase):
    def setUp(self):
        if not DATA.exists():
            self.skipTest(f"{DATA} is not on this machine")
        folder = tempfile.TemporaryDirectory(prefix="stepcast-published-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class SailorTest(PublishedTest):
    """OPT-350M on nodes of four GH200 by Sailor's DeepSpeed: its profile of layers and its links are the input, and nothing is fitted.

    A device of a tensor group sends its whole activation over its own link, and stages exchange by blocking calls.
    """

    WIDTH = 4
    HIDDEN, SEQUENCE, BLOCKS, VOCABULARY, POSITIONS = 1024, 2048, 24, 50272, 2048

    def link(self, devices, size):
        """Bytes per second of a message, by Sailor's fit of its measurements with so many senders of a node."""
        coefficients = self.links[str(devices)][0]
        size = math.log2(size / 1e6)
        return 1e9 * sum(c * size**power for c, power in zip(coefficients, (2, 1, 0)))

    def setUp(self):
        super().setUp()
        self.links = json.loads((DATA / "sailor_providers_network_coeffs_all_homo.json").read_text())["inter"]["GH-96"]
        self.times = json.loads((DATA / "profiles_OPT-350_GH-96_profile.json").read_text())
        self.reductions = self.folder / "reductions.csv"
        lines = ["kind,workers,size_bytes,seconds"]
        for workers in (2, 4, 8, 16, 32):
            for size in (2**power for power in range(18, 31)):
                lines.append(f"all_reduce,{workers},{workers * size},{2 * (workers - 1) * size / self.link(1, size)}")
        self.reductions.write_text("\n".join(lines))
        self.profiles = {}
        for micro_batch in (1, 2, 4, 8):
            self.profiles[micro_batch] = self.folder / f"{micro_batch}.json"
            told = stepcast(
                *("profile", "import", DATA / "profiles_OPT-350_GH-96_profile.json", "--graph", DATA / "simulations_configs_training_config_opt_350.json"),
                *("--batch-size", micro_batch, "--tensor-parallel", self.WIDTH, "--bandwidth", "25GB/s", "--save", self.profiles[micro_batch]),
            )
            self.assertEqual("took longer than with a larger micro-batch" in told, micro_batch == 1)

    def theirs(self, stages, micro_batch, replicas, micro_batches):
        """What Sailor's simulator says: its formula of the slowest stage, its transfers and a ring after all (runtime_simulator.py, MIT)."""
        layers = [self.times[str(micro_batch)][str(self.WIDTH)][str(layer)] for layer in range(self.BLOCKS + 2)]
        elements = [(self.VOCABULARY + self.POSITIONS) * self.HIDDEN, *[12 * self.HIDDEN**2 + 13 * self.HIDDEN] * self.BLOCKS, (self.VOCABULARY + 2) * self.HIDDEN]
        activation = 4 * micro_batch * self.SEQUENCE * self.HIDDEN
        transfer = activation / self.link(self.WIDTH, activation)
        computed, sent, reduced, first = [], [], [0], 0
        for stage, count in enumerate(stages):
            computed.append(sum(forward + backward for forward, backward, _ in layers[first : first + count]))
            sent.append(0 if len(stages) == 1 else transfer if stage == 0 and len(stages) <= 3 else 2 * transfer)
            part = 4 * sum(elements[first : first + count]) / self.WIDTH / replicas
            if replicas > 1:
                reduced.append(2 * (replicas - 1) * part / self.link(1, part))
            first += count
        slowest = max(computed[i] + sent[i] for i in range(len(stages)))
        return (micro_batches - 1) * slowest + sum(computed) + sum(sent) + layers[0][2] + max(reduced)

    def test_runs_of_opt_350m(self):
        ours, theirs, bounded = [], [], []
        print("\nOPT-350M on GH200, t=4: seconds of a step\nnodes  p   d  micro-batch  m   measured  ours              Sailor's")
        for row in rows_of("sailor_iteration_times.csv"):
            job = json.loads(row["num_microbatches_or_keys"])
            stages, micro_batch, seconds = json.loads(row["layers_per_stage"]), int(row["mbs"]), float(row["real_s"])
            replicas = job["N"] // len(stages)
            micro_batches = job["gbs"] // (micro_batch * replicas)
            rate = self.link(1, 4 * micro_batch * self.SEQUENCE * self.HIDDEN)
            pipeline = f"stages={len(stages)},micro-batches={micro_batches},receives=fused,links=serial,reduction=at-end,step-barrier,bandwidth={rate:.0f}B/s,latency=0s"
            if len(stages) > 1:
                pipeline += ",cuts=" + ",".join(f"forward/{sum(stages[: i + 1])}" for i in range(len(stages) - 1))
            answer = predicted(self.profiles[micro_batch], "--pipeline", pipeline, "--workers", replicas, "--measured", self.reductions)
            step = micro_batch * micro_batches * replicas / answer["examplesPerSecond"]
            other = self.theirs(stages, micro_batch, replicas, micro_batches)
            ours.append(step / seconds - 1)
            theirs.append(other / seconds - 1)
            bounded.append(micro_batch == 1)
            print(
                f"{job['N']:5d} {len(stages):2d} {replicas:3d} {micro_batch:12d} {micro_batches:3d} {seconds:9.3f} {step:8.3f} ({100 * ours[-1]:+5.1f} %)"
                f" {other:8.3f} ({100 * theirs[-1]:+5.1f} %)"
            )
        print(f"ours: {percent(ours)}\nSailor's: {percent(theirs)}")
        sound = [error for error, no in zip(ours, bounded) if not no]
        print(f"without micro-batch 1, whose profile contradicts itself: ours {percent(sound)}; Sailor's {percent([e for e, no in zip(theirs, bounded) if not no])}")
        self.assertEqual(len(ours), 15)
        self.assertLessEqual(statistics.fmean(map(abs, ours)), 0.08)
        self.assertLess(statistics.fmean(map(abs, ours)), statistics.fmean(map(abs, theirs)))


class RanksTest(PublishedTest):
    """Real pipelines over gloo, each from the recordings of the ranks of one replica, 4 micro-batches and 4 steps of them."""

    RECORDED = {("alexnet_p", 2): "1f1b", ("alexnet_p", 3): "gpipe", ("transformer_p", 2): "1f1b", ("transformer_p", 3): "1f1b"}
    LINKS = "links=device,reduction=buckets,latency=350us"

    def test_ranks_of_a_replica_tell_other_replicas_and_micro_batches(self):
        folder = DATA.parent / "pp"
        if not folder.exists():
            self.skipTest(f"{folder} is not on this machine")
        points = [one for one in json.loads((folder / "measured.json").read_text()) if one["p2p"] == "eager" and one["rate"] == 1e9]
        points = [one for one in points if not one["send_after_allreduce"]]
        profiles, errors = {}, []
        for (model, stages), schedule in self.RECORDED.items():
            [alone] = [
                one for one in points
                if (one["model"], one["stages"], one["replicas"], one["schedule"], one["microbatches"]) == (model, stages, 1, schedule, 4)
            ]
            ranks = [folder / model / f"{model}-p{stages}-{schedule}-m4-rank{rank}.json.gz" for rank in range(stages)]
            profiles[model, stages] = self.folder / f"{model}{stages}.json"
            stepcast(
                *("profile", "import", *ranks, "--batch-size", 1, "--bandwidth", "119.55MB/s", "--step-seconds", 1 / alone["mean"]),
                *("--save", profiles[model, stages]),
            )
        for one in points:
            pipeline = f"stages={one['stages']},micro-batches={one['microbatches']},schedule={one['schedule']},{self.LINKS}"
            [answer] = json.loads(
                stepcast(
                    *("predict", profiles[one["model"], one["stages"]], "--pipeline", pipeline, "--workers", one["replicas"], "--latency", "259us"),
                    *("--bucket-cap-mb", 5, "--output", "json"),
                )
            )["predictions"]
            errors.append(answer["stepsPerSecond"] / one["replicas"] / one["mean"] - 1)
        print(f"\nfrom ranks, receives EAGER: {percent(errors)}")
        self.assertEqual(len(errors), 40)
        self.assertLessEqual(statistics.fmean(map(abs, errors)), 0.035)
        self.assertLessEqual(max(map(abs, errors)), 0.07)


class VtrainTest(PublishedTest):
    """GPT of 3.6B and 175B parameters on 64 and 512 A100: one run of each model, tensor width and micro-batch tells its other layouts."""

    def test_one_run_tells_other_stages(self):
        jobs = collections.defaultdict(list)
        for row in rows_of("vtrain_multi_node.csv"):
            model, devices, batch, micro_batch, _, _, _, _, width, replicas, stages, milliseconds = map(float, row.values())
            jobs[model, width, micro_batch].append([devices, stages, batch / replicas / micro_batch, milliseconds / 1e3])
        errors, linear = [], []
        print("\nGPT on A100, by one run each: seconds of a step\nmodel  t  micro-batch  p   m    measured  ours              linear scaling")
        for (model, width, micro_batch), runs in jobs.items():
            if len(runs) == 1:
                continue
            lines = ["devices,stages,micro_batches,step_seconds", *(f"{n:g},{p:g},{m:g},{seconds if i == 0 else ''}" for i, (n, p, m, seconds) in enumerate(runs))]
            fit = json.loads(stepcast("layout", "fit", "-", "--output", "json", text="\n".join(lines)))
            for (_, stages, micro_batches, seconds), run in list(zip(runs, fit["runs"]))[1:]:
                errors.append(run["stepSeconds"] / seconds - 1)
                linear.append(run["linearStepSeconds"] / seconds - 1)
                interval = run["stepInterval"]
                self.assertTrue(interval["lower"] < seconds < interval["upper"], (model, width, micro_batch, stages))
                print(
                    f"{model:5.1f}B {width:2.0f} {micro_batch:11.0f} {stages:4.0f} {micro_batches:4.0f} {seconds:9.3f} {run['stepSeconds']:8.3f} ({100 * errors[-1]:+5.1f} %)"
                    f" {run['linearStepSeconds']:8.3f} ({100 * linear[-1]:+5.1f} %)"
                )
        print(f"ours: {percent(errors)}\nlinear scaling: {percent(linear)}")
        self.assertEqual(len(errors), 14)
        self.assertLessEqual(statistics.median(map(abs, errors)), 0.031)


class UltrascaleTest(PublishedTest):
    """Llama of 1B and 8B parameters on up to 16 nodes of eight H100, by one node's run of the same model, tensor width, ZeRO and micro-batch.

    Reductions take what the cluster's own NCCL benchmark says of a ring of so many devices; t rings of a node share its links. Gradients are of float32
    (nanotron's accumulate_grad_in_fp32), the parameters that ZeRO-1 gathers of bfloat16, and the models those of nanotron's benchmarks with a vocabulary of
    131,072.
    """

    SEQUENCE, NODE = 4096, 8
    PARAMETERS = {"1B": 1.2415e9, "8B": 8.053e9}
    # By collective: its curve, and how often a ring moves the bytes of float32.
    KINDS = {"all_reduce": ("AllReduce", 2), "reduce_scatter": ("ReduceScatter", 1), "all_gather": ("AllGather", 0.5)}

    def setUp(self):
        super().setUp()
        figures = json.loads((DATA / "ultrascale_playbook_figures.json").read_text())["pp_comm_bandwidth"]
        self.rates = {figure["name"]: figure["y"] for figure in figures if figure["name"]}

    def seconds(self, kind, workers, width, size):
        """Of a collective of so many bytes of gradients, or of their parameters, in each of `width` rings of a node; bus bandwidths are of 1, 2, 4, .. nodes."""
        name, rounds = self.KINDS[kind]
        place = math.log2(max(workers, self.NODE) / self.NODE)
        low = min(int(place), len(self.rates[name]) - 2)
        rate = self.rates[name][low] ** (1 - place + low) * self.rates[name][low + 1] ** (place - low) * 1e9
        if workers * width > self.NODE:
            rate /= width
        return rounds * (workers - 1) / workers * size / rate

    def measured(self, width, size):
        path = self.folder / f"{width}.csv"
        lines = ["kind,workers,size_bytes,seconds"]
        for kind in self.KINDS:
            for workers in (2, 4, 8, 16, 32, 64, 128):
                lines += [f"{kind},{workers},{int(bytes_)},{self.seconds(kind, workers, width, bytes_)}" for bytes_ in (size / 2, size)]
        path.write_text("\n".join(lines))
        return path

    def step(self, row, forward, size):
        """Predicted seconds of a run, a micro-batch of which takes `forward` + 2 `forward` seconds."""
        width, replicas, micro_batches = int(row["tp"]), int(row["dp"]), int(row["grad_acc"])
        table, profile = self.folder / "layers.csv", self.folder / "job.json"
        table.write_text(f"forward_ms,backward_ms,parameter_bytes\n{1e3 * forward},{2e3 * forward},{int(size)}\n")
        stepcast("profile", "import", table, "--batch-size", row["micro_batch"], "--bandwidth", "25GB/s", "--save", profile)
        sharding = ["--sharding", "optimizer"] if row["zero"] == "1" else []
        answer = predicted(profile, "--workers", replicas, "--accumulate", micro_batches, "--measured", self.measured(width, size), *sharding)
        return int(row["micro_batch"]) * micro_batches * replicas / answer["examplesPerSecond"]

    def test_one_node_tells_up_to_16(self):
        jobs = collections.defaultdict(list)
        for row in rows_of("ultrascale_pp1.csv"):
            if row["status"] == "ok":
                jobs[row["model"], int(row["tp"]), row["zero"], int(row["micro_batch"])].append(row)
        errors, linear, by_nodes = [], [], collections.defaultdict(list)
        print("\nLlama on H100, by one node's run: what is off by more than 10 %")
        for (model, width, zero, _), runs in jobs.items():
            base, *others = sorted(runs, key=lambda row: int(row["nodes"]))
            others = [row for row in others if int(base["nodes"]) == 1 < int(row["nodes"]) <= 16]
            size = 4 * self.PARAMETERS[model] / width
            taken = lambda row: int(row["global_batch"]) * self.SEQUENCE / float(row["tokens_per_s"])  # noqa: E731
            # The one node's own reduction is no computation.
            replicas = int(base["dp"])
            kinds = ["all_reduce"] if zero == "0" else ["reduce_scatter", "all_gather"]
            reduction = sum(self.seconds(kind, replicas, width, size) for kind in kinds) if replicas > 1 else 0
            forward = (taken(base) - reduction) / int(base["grad_acc"]) / 3
            for row in others:
                error = self.step(row, forward, size) / taken(row) - 1
                errors.append(error)
                linear.append(taken(base) / int(base["grad_acc"]) * int(row["grad_acc"]) / taken(row) - 1)
                by_nodes[int(row["nodes"]), zero].append(error)
                if abs(error) > 0.1:
                    print(f"{model} t={width} ZeRO-{zero} micro-batch {row['micro_batch']}, {row['nodes']} nodes: {taken(row):.3f} s, {100 * error:+.1f} %")
        for (nodes, zero), found in sorted(by_nodes.items()):
            print(f"{nodes:2d} nodes, ZeRO-{zero}: {len(found)} runs, median {100 * statistics.median(found):+.1f} %")
        print(f"ours: {percent(errors)}\nlinear scaling: {percent(linear)}")
        self.assertEqual(len(errors), 57)
        self.assertLessEqual(statistics.median(map(abs, errors)), 0.033)
        self.assertLessEqual(sorted(map(abs, errors))[int(0.9 * (len(errors) - 1))], 0.19)


class PrimusTest(PublishedTest):
    """A real pipeline of 8 stages and 16 micro-batches (AMD-AGI/Primus fd1eeabb, MIT), from the begin and end of each of its computations, sends taken as free.

    The median step is held against: two of the 18 after the warm-up stood still for 0.2 s between computations.
    """

    STAGES, MICRO_BATCHES, WARM_UP = 8, 16, 2

    def setUp(self):
        super().setUp()
        ranks = [json.loads((DATA / "primus_pp8" / f"pp_rank_{rank}.json").read_text()) for rank in range(self.STAGES)]
        self.steps = [[rank[str(step)] for rank in ranks] for step in range(self.WARM_UP + 1, len(ranks[0]) + 1)]
        self.measured = statistics.median(max(rank["bwd_end"][-1] for rank in step) - step[0]["fwd_start"][0] for step in self.steps) / 1e3

    def predicted_step(self, source):
        """Seconds of a step whose stage s takes the time of rank source(s)."""
        taken = lambda rank, part, k: round(1e6 * (rank[f"{part}_end"][k] - rank[f"{part}_start"][k]))  # noqa: E731
        order = [*(("fwd", stage) for stage in range(self.STAGES)), *(("bwd", stage) for stage in reversed(range(self.STAGES)))]
        operations = []
        for part, stage in order:
            before = [len(operations) - 1] if operations else []
            if part == "fwd":
                operation = {"pass": "FORWARD", "waitingFor": before, "outputBytes": "1" if stage < self.STAGES - 1 else "0"}
            else:
                operation = {"pass": "BACKWARD", "waitingFor": sorted({stage, *before})}
            operations.append({"name": f"{part}/{stage}", "resource": "WORKER", **operation})
        operations.append({"name": "gradient", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "sizeBytes": "1", "parameter": "all", "waitingFor": [len(order) - 1]})
        steps = []
        for ranks in self.steps:
            for k in range(self.MICRO_BATCHES):
                ends = list(itertools.accumulate([*(taken(ranks[source(stage)], part, k) for part, stage in order), 0]))
                steps.append({"startNs": [0, *ends[:-1]], "endNs": ends})
        profile = self.folder / "primus.json"
        profile.write_text(json.dumps({"batchSize": "1", "platform": {"bandwidthBytesPerSecond": 1e12}, "operations": operations, "steps": steps}))
        cuts = ",".join(f"fwd/{stage}" for stage in range(1, self.STAGES))
        answer = predicted(profile, "--workers", 1, "--latency", "0us", "--pipeline", f"stages={self.STAGES},micro-batches={self.MICRO_BATCHES},schedule=1f1b,latency=0us,cuts={cuts}")
        return self.MICRO_BATCHES / answer["examplesPerSecond"]

    def test_a_step_is_told_by_all_ranks_and_by_an_inner_one_with_the_last(self):
        last = self.STAGES - 1
        found = {}
        for name, source in (("all ranks", lambda stage: stage), ("rank 3 and the last", lambda stage: last if stage == last else 3), ("rank 3 alone", lambda stage: 3)):
            found[name] = self.predicted_step(source) / self.measured - 1
        print(f"\nPrimus, 8 stages, 16 micro-batches: {self.measured:.3f} s a step; " + ", ".join(f"by {name} {100 * error:+.1f} %" for name, error in found.items()))
        self.assertLessEqual(abs(found["all ranks"]), 0.015)
        self.assertLessEqual(abs(found["rank 3 and the last"]), 0.04)
        self.assertGreater(abs(found["rank 3 alone"]), abs(found["rank 3 and the last"]))
