"""What came out: as JSON for programs, as tables for people."""

import os
import statistics

from points import PRECISION

STARTS = ("staggered", "simultaneous")
BASELINES = ("queueing", "cynthia", "cynthia_halved", "coarse_tensors")


def raw(point, measurement, window_bytes):
    """What was measured of a point, as tests/data/testbed_servers keeps it."""
    return {
        "model": point.model,
        "scale": point.scale,
        "kind": point.kind,
        "workers": point.workers,
        "parameter_servers": point.servers,
        "transfer_order": point.transfer_order,
        "window_bytes": window_bytes,
        "window_seconds": point.window,
        "mean": round(measurement.mean, 4),
        "standard_error": round(measurement.standard_error, 4),
        "tcp_timeouts": measurement.tcp_timeouts,
        "load_average": os.getloadavg()[0],
        "restarts": [{"steps_per_second": round(rate, 4), "start_offsets_ns": offsets} for rate, offsets in zip(measurement.rates, measurement.start_offsets_ns)],
    }


def entry(point, measurement, prediction, equal_shares):
    """One measured point beside what was predicted of it."""
    return {
        "model": point.model,
        "kind": point.kind,
        "workers": point.workers,
        "parameter_servers": point.servers,
        "link_sharing": point.link_sharing,
        "predicted": prediction.mean,
        "predicted_standard_error": prediction.standard_error,
        "measured": measurement.mean,
        "measured_standard_error": measurement.standard_error,
        "relative_error": prediction.mean / measurement.mean - 1,
        "equal_shares_relative_error": equal_shares.mean / measurement.mean - 1,
        "worker_spread": measurement.spread,
        "restarts": len(measurement.rates),
        # The interval in which 95 % of single restarts were expected, and how many were there.
        "run_interval": prediction.run_interval,
        "restarts_inside": sum(prediction.run_interval[0] <= rate <= prediction.run_interval[1] for rate in measurement.rates),
        # The steady state that is answered by default, and the one that workers which start together would have.
        "steady": {start: {"predicted": steps, "relative_error": steps / measurement.mean - 1} for start, steps in sorted(prediction.steady.items())},
        "baselines": {
            name: {"predicted": steps, "relative_error": steps / measurement.mean - 1} for name, steps in sorted(prediction.baselines.items())
        },
    }


def beyond_errors(one):
    """How far off a prediction is beyond twice both standard errors, as a share of the measurement; 0 where it is not."""
    doubt = 2 * (one["measured_standard_error"] ** 2 + one["predicted_standard_error"] ** 2) ** 0.5 / one["measured"]
    return max(0.0, abs(one["relative_error"]) - doubt)


def table(entries):
    """Markdown: measured and predicted steps/s, and every model's error."""
    lines = [
        "| model | workers | network | measured steps/s | predicted | error | with equal shares | 95 % of runs | restarts inside | steady state | simultaneous |"
        " queueing | Cynthia | halved T_C | coarse tensors |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in entries:
        baselines = [one["baselines"].get(name, {}).get("relative_error") for name in BASELINES]
        cells = [
            one["model"],
            str(one["workers"]),
            one["kind"],
            f"{one['measured']:.2f} ± {one['measured_standard_error']:.2f}",
            f"{one['predicted']:.2f} ± {one['predicted_standard_error']:.2f}",
            _percent(one["relative_error"]),
            _percent(one["equal_shares_relative_error"]),
            f"{one['run_interval'][0]:.2f} to {one['run_interval'][1]:.2f}",
            f"{one['restarts_inside']} of {one['restarts']}",
            *(_percent(one["steady"].get(start, {}).get("relative_error")) for start in STARTS),
            *(_percent(error) for error in baselines),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(entries):
    """Markdown: mean absolute errors over the grid, and the worst point."""
    grid = [one for one in entries if one["kind"] == "as recorded"]
    rows = [("predicted", [one["relative_error"] for one in grid]), ("with equal shares", [one["equal_shares_relative_error"] for one in grid])]
    together = [one for one in entries if one["kind"] == "started together"]
    for start in STARTS:
        for kind, points in (("random starts", grid), ("started together", together)):
            errors = [one["steady"][start]["relative_error"] for one in points if start in one["steady"]]
            rows.append((f"steady state with {start} starts, measured with {kind}", errors))
    for name in BASELINES:
        rows.append((name.replace("_", " "), [one["baselines"][name]["relative_error"] for one in grid if name in one["baselines"]]))
    lines = ["| | mean absolute error | mean error | worst |", "|---|---|---|---|"]
    for name, errors in rows:
        if errors:
            worst = max(errors, key=abs)
            lines.append(f"| {name} | {100 * statistics.fmean(map(abs, errors)):.1f} % | {_percent(statistics.fmean(errors))} | {_percent(worst)} |")
    furthest = max(entries, key=beyond_errors)
    several = [one for one in entries if one["workers"] > 1]
    lines.append("")
    lines.append(
        f"Single restarts inside the interval that 95 % of them should be in: {sum(one['restarts_inside'] for one in several)} of "
        f"{sum(one['restarts'] for one in several)} with several workers. Points whose mean is not known to {PRECISION:.0%}: "
        f"{sum(one['measured_standard_error'] > PRECISION * one['measured'] for one in entries)} of {len(entries)}."
    )
    lines.append("")
    lines.append(
        f"Furthest beyond twice both standard errors: {100 * beyond_errors(furthest):.1f} % ({furthest['model']}, W={furthest['workers']}, {furthest['kind']})."
    )
    return "\n".join(lines)


def _percent(share):
    return "" if share is None else f"{100 * share:+.1f} %"
