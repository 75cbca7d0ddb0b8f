"""The file of core/predict with the errors of predictions that a testbed measured, a row a kind of job."""

import pathlib
import statistics
import time

FILE = pathlib.Path(__file__).resolve().parents[3] / "core/predict/model_errors.inc"


def write(kind, relative_errors, measured_by, file=FILE):
    """Replaces the row of that kind: the mean of the absolute errors, and who measured it, today."""
    rows = file.read_text().splitlines()
    [at] = [i for i, row in enumerate(rows) if row.startswith(f'{{"{kind}",')]
    fraction = statistics.fmean(abs(error) for error in relative_errors)
    rows[at] = f'{{"{kind}", {fraction:.3f}, "{measured_by}, {time.strftime("%Y-%m-%d")}"}},'
    file.write_text("\n".join(rows) + "\n")
