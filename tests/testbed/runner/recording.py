"""What one worker's run shows a profiler: a profile as TensorFlow's tracing would give it."""

import json
import subprocess


def profile_of(run, job, bandwidth, skipped, steps):
    """`steps` steps, after those that are skipped while connections find their pace."""
    chosen = run.steps[0][skipped : skipped + steps]
    if len(chosen) < steps:
        raise RuntimeError(f"{len(chosen)} steps were recorded, not {steps}")
    operations = []
    for operation in job.operations:
        kept = {key: operation[key] for key in ("name", "resource", "waiting_for", "parameter")}
        if operation["resource"] in ("DOWNLINK", "UPLINK"):
            kept["size_bytes"] = operation["size_bytes"]
        if operation["resource"] != "WORKER":
            kept["parameter_server"] = operation["parameter_server"]
        operations.append(kept)
    return {
        "display_name": job.model,
        "model": job.model,
        "framework": "testbed",
        "batch_size": job.batch_size,
        "parameter_servers": job.servers,
        "platform": {"bandwidth_bytes_per_second": round(bandwidth, 1)},
        "operations": operations,
        "steps": [
            {"start_ns": [at - step["begin_ns"] for at in step["start_ns"]], "end_ns": [at - step["begin_ns"] for at in step["done_ns"]]} for step in chosen
        ],
    }


def check(stepcast, profile, folder):
    """What `stepcast profile check` finds of the recording: its reply."""
    path = folder / "profile.json"
    path.write_text(json.dumps(profile))
    reply = subprocess.run([stepcast, "profile", "check", path, "--local", "--output", "json"], capture_output=True, text=True, check=True)
    return json.loads(reply.stdout)


def import_differences(recorder, stepcast, profile, folder):
    """Writes the profile as TensorFlow would have recorded it, imports that, and returns what differs, in words."""
    path = folder / "recording.pb"
    imported_path = folder / "imported.json"
    path.write_bytes(subprocess.run([recorder], input=json.dumps(profile).encode(), capture_output=True, check=True).stdout)
    bandwidth = f"{profile['platform']['bandwidth_bytes_per_second']}B/s"
    subprocess.run(
        [stepcast, "profile", "import", path, "--format", "run-metadata", "--batch-size", str(profile["batch_size"]), "--bandwidth", bandwidth,
         "--local", "--save", imported_path],
        capture_output=True, text=True, check=True,
    )
    imported = json.loads(imported_path.read_text())
    return _differences(profile, imported)


def _differences(profile, imported):
    found = []
    by_name = {operation["name"]: i for i, operation in enumerate(imported["operations"])}
    missing = [operation["name"] for operation in profile["operations"] if operation["name"] not in by_name]
    if missing or len(by_name) != len(profile["operations"]):
        return [f"{len(missing)} operations are missing of {len(profile['operations'])}, {len(by_name)} were imported"]
    for i, operation in enumerate(profile["operations"]):
        other = imported["operations"][by_name[operation["name"]]]
        waits = {profile["operations"][j]["name"] for j in operation["waiting_for"]}
        other_waits = {imported["operations"][j]["name"] for j in other.get("waitingFor", [])}
        if (operation["resource"], waits, operation.get("size_bytes", 0)) != (other["resource"], other_waits, int(other.get("sizeBytes", 0))):
            found.append(operation["name"])
        for step, other_step in zip(profile["steps"], imported["steps"]):
            j = by_name[operation["name"]]
            length = step["end_ns"][i] - step["start_ns"][i]
            if abs(length - (int(other_step["endNs"][j]) - int(other_step["startNs"][j]))) > 1:
                found.append(f"{operation['name']} in time")
                break
    return found
