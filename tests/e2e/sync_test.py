"""`stepcast profile sync`: a folder of profiles, as in Git or a mounted ConfigMap, made a server's, again and again."""

import base64
import gzip
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import yaml

from contract import from_json, profile_pb2, store
from sample import TOP, recorded, small
from stepcastd import PATIENCE_SECONDS, ServerTest

TRACE = os.path.join(TOP, "tests", "data", "pytorch", "alexnet_s-25.json.gz")
TRACE_FLAGS = "# One worker's, on the testbed.\n--format pytorch\n--batch-size 128\n--bandwidth=119.55MB/s\n\n--model alexnet_s\n"
LABEL = "stepcast-sync"


class FolderTest(ServerTest):
    def setUp(self):
        super().setUp()
        temporary = tempfile.TemporaryDirectory(prefix="stepcast-sync-")
        self.addCleanup(temporary.cleanup)
        self.folder = os.path.join(temporary.name, "profiles")
        os.mkdir(self.folder)

    def write(self, name, content):
        content = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def remove(self, name):
        os.remove(os.path.join(self.folder, name))

    def program(self, *arguments):
        done = subprocess.run(
            [os.environ["STEPCAST"], "--server", self.server.address, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def sync(self, *flags, status=0, folder=None):
        """profile or file -> action, and what it printed to standard error."""
        code, out, errors = self.program("profile", "sync", folder or self.folder, *flags, "--output", "json")
        self.assertEqual(code, status, out + errors)
        self.report = json.loads(out)
        return {row["profile"] or row["file"]: row["action"] for row in self.report["profiles"]}, errors

    def stored(self):
        """id -> the profile, in short."""
        profiles = self.server.profiles.ListProfiles(store.ListProfilesRequest(page_size=1000)).profiles
        return {profile.name.removeprefix("profiles/"): profile for profile in profiles}


class SyncTest(FolderTest):
    def test_makes_the_store_the_folder_s_and_does_nothing_twice(self):
        self.write("small.json", small())
        self.write("packed.json.gz", gzip.compress(json.dumps(recorded()).encode()))
        self.write("binary.pb", from_json(profile_pb2.Profile(), small(model="binary")).SerializeToString())
        shutil.copy(TRACE, os.path.join(self.folder, "trace.json.gz"))
        self.write("trace.import", TRACE_FLAGS)
        self.write("README.md", "Profiles of the team.")
        os.mkdir(os.path.join(self.folder, "more.json"))
        created, errors = self.sync("--set", "team")
        ids = ["binary", "packed", "small", "trace"]
        self.assertEqual(created, {"README.md": "SKIP", **{f"profiles/{each}": "CREATE" for each in ids}})
        self.assertEqual((errors, sorted(self.stored()), self.report["set"]), ("", ids, "team"))
        self.assertEqual({profile.labels[LABEL] for profile in self.stored().values()}, {"team"})
        self.assertEqual((self.stored()["trace"].batch_size, self.stored()["trace"].model), (128, "alexnet_s"))
        before = {each: profile.etag for each, profile in self.stored().items()}
        code, out, _ = self.program("profile", "sync", self.folder, "--set", "team")
        self.assertEqual((code, out.splitlines()[-1]), (0, "set team: 4 unchanged, 1 skipped"))
        self.assertEqual({each: profile.etag for each, profile in self.stored().items()}, before)
        self.assertEqual(self.program("predict", "trace", "--workers", "2", "--steps", "50")[0], 0)

    def test_replaces_what_changed_and_only_that(self):
        self.write("a.json", small())
        self.write("b.json", small())
        self.sync()
        before = self.stored()
        self.write("a.json", small(batch_size=16))
        self.assertEqual(self.sync()[0], {"profiles/a": "REPLACE", "profiles/b": "KEEP"})
        self.assertEqual(self.stored()["a"].batch_size, 16)
        self.assertEqual(self.stored()["b"], before["b"])
        # The digest is without display name and labels.
        self.write("b.json", small(labels={"gpu": "v100"}))
        self.assertEqual(self.sync()[0], {"profiles/a": "KEEP", "profiles/b": "REPLACE"})
        self.assertEqual(dict(self.stored()["b"].labels), {"gpu": "v100", LABEL: "default"})
        self.write("b.json", small(display_name="other", labels={"gpu": "v100"}))
        self.assertEqual(self.sync()[0]["profiles/b"], "REPLACE")
        self.assertEqual(self.sync()[0]["profiles/b"], "KEEP")

    def test_a_faulty_file_fails_alone_and_what_was_stored_stays(self):
        for name in ("a", "b", "c"):
            self.write(f"{name}.json", small())
        self.sync("--set", "team")
        before = self.stored()
        self.write("a.json", small(batch_size=0))
        self.write("b.json", "{ no profile")
        self.write("c.json", small(batch_size=3))
        self.write("d.json", "")
        os.symlink("nowhere", os.path.join(self.folder, "e.json"))
        actions, errors = self.sync("--set", "team", "--prune", status=1)
        self.assertEqual(actions, {"a.json": "FAIL", "b.json": "FAIL", "profiles/c": "REPLACE", "d.json": "FAIL", "e.json": "FAIL"})
        self.assertEqual({each: self.stored()[each] for each in "ab"}, {each: before[each] for each in "ab"})
        self.assertEqual(self.stored()["c"].batch_size, 3)
        self.assertRegex(errors, r"(?s)a\.json: error: INVALID_ARGUMENT: .*batch_size")
        for name in ("b.json", "d.json", "e.json"):
            self.assertIn(f"{name}: error: ", errors)
        (row,) = [row for row in self.report["profiles"] if row["file"] == "a.json"]
        self.assertIn("batch_size", row["error"]["violations"][0]["field"])

    def test_names_that_are_no_ids_are_refused(self):
        for name in ("under_score.json", "9lives.json", "ends-.json", "two.points.json", "x" * 64 + ".json", "Upper.json"):
            self.write(name, small())
        self.write("good.json", small())
        actions, errors = self.sync(status=1)
        self.assertEqual([each for each, action in actions.items() if action == "CREATE"], ["profiles/good"])
        self.assertEqual((len(actions), sorted(self.stored())), (7, ["good"]))
        self.assertEqual(errors.count(": error: INVALID_ARGUMENT: REQUEST_INVALID: header.profile_id: "), 6, errors)

    def test_two_files_of_one_name_are_both_refused(self):
        self.write("a.json", small())
        self.write("a.json.gz", gzip.compress(json.dumps(small()).encode()))
        self.write("lonely.import", TRACE_FLAGS)
        actions, errors = self.sync(status=1)
        self.assertEqual(actions, {"a.json": "FAIL", "a.json.gz": "FAIL", "lonely.import": "FAIL"})
        self.assertEqual((errors.count("several files"), errors.count("no recording"), self.stored()), (2, 1, {}))

    def test_a_recording_needs_flags_and_gets_no_others(self):
        trace = self.write("trace.json.gz", b"")
        shutil.copy(TRACE, trace)
        self.assertIn("trace.import beside it", self.sync(status=1)[1])
        for flags, fault in (
            ("--batch-size 128", "--bandwidth"),
            (TRACE_FLAGS + "--save /tmp/elsewhere", "--save, --id and --replace mean nothing"),
            (TRACE_FLAGS + "--id other", "--save, --id and --replace mean nothing"),
            (TRACE_FLAGS + "--graph ../secret", "is not beside it"),
            (TRACE_FLAGS + "--graph secret", "there is no file"),
            (TRACE_FLAGS + "--steps 3", "does not apply"),
            (TRACE_FLAGS + "--no-such-flag 1", "no-such-flag"),
            (TRACE_FLAGS + "--help", "is not `--FLAG VALUE`"),
            (TRACE_FLAGS + "--help me", "help"),
            (TRACE_FLAGS + "other.json", "is not `--FLAG VALUE`"),
            (TRACE_FLAGS.replace("128", "many"), "many"),
            (TRACE_FLAGS.replace("128", "-1"), "batch_size"),
        ):
            with self.subTest(flags):
                self.write("trace.import", flags)
                actions, errors = self.sync(status=1)
                self.assertEqual((list(actions.values()), self.stored()), (["FAIL"], {}))
                self.assertIn(fault, errors)
                self.assertIn("trace.import", errors)
        self.assertFalse(os.path.exists("/tmp/elsewhere"))

    def test_dry_run_says_it_and_changes_nothing(self):
        self.write("a.json", small())
        self.write("b.json", small())
        self.write("c.json", small())
        self.sync("--set", "team")
        before = self.stored()
        self.write("a.json", small(batch_size=2))
        self.remove("b.json")
        self.write("new.json", small())
        self.write("bad.json", small(batch_size=-1))
        actions, _ = self.sync("--set", "team", "--prune", "--dry-run", status=1)
        self.assertEqual(actions, {"profiles/a": "REPLACE", "profiles/b": "DELETE", "profiles/c": "KEEP", "profiles/new": "CREATE", "bad.json": "FAIL"})
        self.assertEqual((self.report["dryRun"], self.stored()), (True, before))
        self.remove("bad.json")
        _, out, _ = self.program("profile", "sync", self.folder, "--set", "team", "--prune", "--dry-run")
        self.assertIn("would replace  profiles/a", out)
        self.assertEqual(out.splitlines()[-1], "set team: 1 would create, 1 would replace, 1 unchanged, 1 would delete")

    def test_a_mounted_config_map_is_read_and_its_next_version_too(self):
        # As the kubelet writes one: links to a hidden link to a hidden folder, replaced as a whole.
        def publish(version, files):
            os.mkdir(os.path.join(self.folder, version))
            for name, content in files.items():
                self.write(f"{version}/{name}", content)
            os.symlink(version, os.path.join(self.folder, "..data_tmp"))
            os.rename(os.path.join(self.folder, "..data_tmp"), os.path.join(self.folder, "..data"))
            for name in set(os.listdir(self.folder)) | set(files):
                if name.startswith("."):
                    continue
                if name not in files:
                    self.remove(name)
                elif not os.path.islink(os.path.join(self.folder, name)):
                    os.symlink(f"..data/{name}", os.path.join(self.folder, name))

        publish("..2026_11_23_1", {"a.json": small(), "b.json": small()})
        self.write(".hidden.json", small())
        self.assertEqual(self.sync("--set", "map", "--prune")[0], {"profiles/a": "CREATE", "profiles/b": "CREATE"})
        publish("..2026_11_23_2", {"a.json": small(batch_size=4)})
        self.assertEqual(self.sync("--set", "map", "--prune")[0], {"profiles/a": "REPLACE", "profiles/b": "DELETE"})


class ManifestTest(FolderTest):
    def test_the_component_s_command_is_one(self):
        """deploy/kubernetes/components/profile-sync, with the folder and the server replaced."""
        with open(os.path.join(TOP, "deploy/kubernetes/components/profile-sync/cron_job.yaml"), encoding="utf-8") as file:
            (container,) = yaml.safe_load(file)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        (mount,) = container["volumeMounts"]
        self.write("a.json", small())
        arguments = [self.folder if word == mount["mountPath"] else word for word in container["args"]]
        self.assertIn(self.folder, arguments)
        for expected in ("1 created", "1 unchanged"):
            code, out, errors = self.program(*arguments)
            self.assertEqual((code, errors, expected in out), (0, "", True), out)


class PruneTest(FolderTest):
    def test_deletes_only_what_a_sync_of_the_set_stored(self):
        self.write("a.json", small())
        self.write("b.json", small())
        self.sync("--set", "team")
        self.write("c.json", small())
        self.sync("--set", "other")
        by_hand = self.write("hand.json", small())
        self.assertEqual(self.program("profile", "upload", by_hand, "--id", "hand")[0], 0)
        for name in ("hand.json", "a.json", "c.json"):
            self.remove(name)
        self.assertEqual(self.sync("--set", "team")[0], {"profiles/b": "KEEP"}, "nothing is pruned unless asked for")
        self.assertEqual(self.sync("--set", "team", "--prune")[0], {"profiles/a": "DELETE", "profiles/b": "KEEP"})
        self.assertEqual(sorted(self.stored()), ["b", "c", "hand"])

    def test_what_others_stored_is_neither_replaced_nor_marked(self):
        by_hand = self.write("hand.json", small())
        self.assertEqual(self.program("profile", "upload", by_hand, "--id", "hand")[0], 0)
        before = self.stored()["hand"]
        self.assertEqual(self.sync("--set", "team", "--prune")[0], {"profiles/hand": "KEEP"})
        self.assertEqual(self.report["profiles"][0]["note"], "stored by hand")
        self.write("hand.json", small(batch_size=2))
        actions, errors = self.sync("--set", "team", "--prune", status=1)
        self.assertEqual(actions, {"profiles/hand": "FAIL"})
        self.assertIn("ALREADY_EXISTS", errors)
        self.assertEqual(self.stored()["hand"], before)

    def test_an_empty_folder_does_not_empty_the_store(self):
        self.write("a.json", small())
        self.sync("--set", "team")
        self.remove("a.json")
        code, out, errors = self.program("profile", "sync", self.folder, "--set", "team", "--prune")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("holds no profile", errors)
        self.assertEqual(list(self.stored()), ["a"])
        self.assertEqual(self.sync("--set", "team")[0], {})

    def test_a_file_that_fails_is_still_a_file(self):
        self.write("a.json", small())
        self.sync("--set", "team")
        self.write("a.json", "nonsense")
        self.write("b.json", small())
        self.assertEqual(self.sync("--set", "team", "--prune", status=1)[0], {"a.json": "FAIL", "profiles/b": "CREATE"})
        self.assertEqual(sorted(self.stored()), ["a", "b"])


class UsageTest(FolderTest):
    def test_wrong_usage_is_status_2(self):
        for flags in (
            [],
            [self.folder, "--prune"],
            [self.folder, "--set", "Upper"],
            [self.folder, "--set", ""],
            [self.folder, "--set", "x" * 64],
            [self.folder, "--set", 'a" OR "'],
            [self.folder, "more"],
        ):
            with self.subTest(flags):
                self.assertEqual(self.program("profile", "sync", *flags)[0], 2)
        local = subprocess.run([os.environ["STEPCAST"], "--local", "profile", "sync", self.folder], capture_output=True, text=True, check=False)
        self.assertEqual((local.returncode, "server's store" in local.stderr), (2, True))

    def test_a_folder_that_is_none_is_refused(self):
        path = self.write("a.json", small())
        for folder in (path, os.path.join(self.folder, "none")):
            code, out, errors = self.program("profile", "sync", folder)
            self.assertEqual((code, out, folder in errors), (1, "", True), errors)

    def test_a_server_that_is_not_there_is_said_once(self):
        self.write("a.json", small())
        self.write("b.json", small())
        done = subprocess.run(
            [os.environ["STEPCAST"], "--server", "127.0.0.1:1", "--timeout", "2s", "profile", "sync", self.folder],
            capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("error: UNAVAILABLE")), (1, "", 1), done.stderr)


class FullStoreTest(FolderTest):
    # Room for one small profile and a half.
    flags = ("--max-store-bytes", "1048576")

    def test_what_is_refused_at_the_last_moment_leaves_the_former_one(self):
        self.write("a.json", small())
        self.sync()
        before = self.stored()["a"]
        # Valid, but the store has no room for it, which only storing it shows.
        names = [f"w{index:06}-{base64.b16encode(os.urandom(90)).decode()}" for index in range(6000)]
        large = small()
        large["operations"] += [{"name": name, "resource": "WORKER"} for name in names]
        large["steps"] = [{"start_ns": [0] * (4 + len(names)), "end_ns": [10000000] * (4 + len(names))}]
        self.write("a.json", large)
        actions, errors = self.sync(status=1)
        self.assertEqual(actions, {"profiles/a": "FAIL"})
        self.assertIn("RESOURCE_EXHAUSTED", errors)
        after = self.stored()["a"]
        self.assertEqual((after.digest, dict(after.labels), after.display_name), (before.digest, dict(before.labels), before.display_name))


if __name__ == "__main__":
    unittest.main()
