"""Replicas of the real server on one PostgreSQL database."""

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

from contract import details_of, grpc, prediction, store
from postgres import Postgres
from sample import message, recorded, small
from stepcastd import PATIENCE_SECONDS, Server, eventually

POSTGRES = None
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../server/docs/backup-restore.md")


def setUpModule():
    global POSTGRES
    POSTGRES = Postgres()
    unittest.addModuleCleanup(POSTGRES.close)


class ReplicasTest(unittest.TestCase):
    def setUp(self):
        self.conninfo = POSTGRES.new_database()
        self.one, self.other = self.replica(), self.replica()

    def replica(self, *flags):
        server = Server("--store", "postgres", "--postgres", self.conninfo, *flags)

        def close():
            errors = server.errors()
            self.assertEqual(server.close(), 0, errors)

        self.addCleanup(close)
        return server

    def create(self, server, profile_id, **changes):
        return server.profiles.CreateProfile(store.CreateProfileRequest(profile_id=profile_id, profile=message(small(**changes))), timeout=PATIENCE_SECONDS)

    def predict(self, server, name):
        request = prediction.PredictThroughputRequest(profile=name, worker_counts=[1])
        return server.predictions.PredictThroughput(request, timeout=PATIENCE_SECONDS)

    def test_replicas_see_each_others_profiles_and_answer_from_them(self):
        created = self.create(self.one, "shared")
        self.assertEqual(self.other.profiles.GetProfile(store.GetProfileRequest(name=created.name)).digest, created.digest)
        self.assertEqual([profile.name for profile in self.other.profiles.ListProfiles(store.ListProfilesRequest()).profiles], [created.name])
        self.assertEqual(self.predict(self.one, created.name).predictions, self.predict(self.other, created.name).predictions)

    def test_a_deletion_on_one_is_known_to_the_others_cache(self):
        first = self.create(self.one, "changes", batch_size=8)
        before = self.predict(self.other, first.name).predictions[0].examples_per_second
        self.predict(self.other, first.name)
        self.assertGreater(self.other.metric("stepcast_cache_entries", cache="profiles"), 0)
        self.one.profiles.DeleteProfile(store.DeleteProfileRequest(name=first.name))
        self.create(self.one, "changes", batch_size=16)
        eventually(lambda: self.predict(self.other, first.name).predictions[0].examples_per_second > 1.5 * before, "the other predicts from the new content")

    def test_the_same_upload_to_both_at_once_is_one_profile(self):
        requests = [
            server.profiles.CreateProfile.future(store.CreateProfileRequest(profile_id="same", profile=message(small())), timeout=PATIENCE_SECONDS)
            for server in (self.one, self.other) * 10
        ]
        self.assertEqual(len({request.result().etag for request in requests}), 1)

    def test_a_database_that_goes_makes_calls_retry_and_comes_back_by_itself(self):
        created = self.create(self.one, "kept")
        self.predict(self.one, created.name)
        self.assertEqual(self.one.http("/readyz")[0], 200)
        POSTGRES.stop()
        try:
            eventually(lambda: self.one.http("/readyz")[0] == 503, "not ready without its database")
            for call in (
                lambda: self.one.profiles.GetProfile(store.GetProfileRequest(name=created.name)),
                lambda: self.create(self.one, "new", batch_size=9),
                lambda: self.one.profiles.DeleteProfile(store.DeleteProfileRequest(name=created.name)),
                lambda: self.predict(self.one, created.name),
            ):
                with self.assertRaises(grpc.RpcError) as raised:
                    call()
                details = details_of(raised.exception)
                self.assertEqual((details.code, details.reason), (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE"), details.message)
                self.assertGreater(details.retry_delay_seconds, 0)
        finally:
            POSTGRES.start()
        for server in (self.one, self.other):
            eventually(lambda server=server: server.http("/readyz")[0] == 200, "ready again")
            eventually(lambda server=server: self.is_there(server, created.name), "it reads again")
        self.create(self.other, "new", batch_size=9)

    def is_there(self, server, name):
        try:
            return bool(server.profiles.GetProfile(store.GetProfileRequest(name=name), timeout=PATIENCE_SECONDS).digest)
        except grpc.RpcError as error:
            self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
            return False

    def test_a_replica_killed_while_it_writes_leaves_whole_profiles_and_an_exact_count(self):
        names = []
        calls = [
            self.one.profiles.CreateProfile.future(store.CreateProfileRequest(profile_id=f"p{at}", profile=message(small(batch_size=at + 1)))) for at in range(200)
        ]
        eventually(lambda: sum(call.done() for call in calls) > 20, "some are stored")
        self.one.kill()
        for call in calls:
            if call.exception(timeout=PATIENCE_SECONDS) is None:
                names.append(call.result().name)
        listed = self.other.profiles.ListProfiles(store.ListProfilesRequest(page_size=1000)).profiles
        self.assertEqual(set(names) - {profile.name for profile in listed}, set(), "acknowledged, and lost")
        for profile in listed:
            self.other.profiles.GetProfile(store.GetProfileRequest(name=profile.name, view=store.FULL))
        database = self.conninfo.rsplit("=", 1)[1]
        counted = POSTGRES.run(database, "SELECT profiles = (SELECT count(*) FROM stepcast_profiles) AND profiles = (SELECT count(*) FROM stepcast_contents) FROM stepcast_totals")
        self.assertEqual(counted.strip(), "t")
        self.one.start()

    def test_a_dump_as_the_page_prints_it_has_the_limits_too(self):
        with open(PAGE, encoding="utf-8") as file:
            (block,) = re.findall(r"^```console no-run=postgres\n(.*?)^```$", file.read(), re.M | re.S)
        database = self.conninfo.rpartition("=")[2]
        commands = "".join(re.sub(r"\bstepcast\b", database, line[2:]) for line in block.splitlines(keepends=True))
        created = self.create(self.one, "kept")
        environment = {**os.environ, "PATH": f"{POSTGRES.programs}:{os.environ['PATH']}", "PGHOST": POSTGRES.folder, "PGUSER": "stepcast"}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["bash", "-ec", commands], cwd=folder, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.conninfo = POSTGRES.conninfo("restored")
        restored = self.replica("--max-profiles", "1")
        self.assertEqual(restored.profiles.GetProfile(store.GetProfileRequest(name=created.name)).digest, created.digest)
        with self.assertRaises(grpc.RpcError) as refused:
            self.create(restored, "one-more", batch_size=8)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)


class OneRefusal:
    """A database's socket in a folder of its own, where the connection of one number, from 0, is cut as it begins."""

    def __init__(self, folder, refused):
        self.refused, self.seen = refused, 0
        self.folder = tempfile.mkdtemp(prefix="stepcast-refusal-")
        self.target = os.path.join(folder, ".s.PGSQL.5432")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.folder, ".s.PGSQL.5432"))
        self.listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        shutil.rmtree(self.folder)

    def _serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:  # closed
                return
            self.seen += 1
            if self.seen == self.refused + 1:
                client.close()
                continue
            database = socket.socket(socket.AF_UNIX)
            database.connect(self.target)
            for source, sink in ((client, database), (database, client)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pass_on(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other end is gone


class StartTest(unittest.TestCase):
    def start(self, *flags, **environment):
        return subprocess.run(
            [os.environ["STEPCASTD"], "--listen", "127.0.0.1:0", "--http-listen", "none", "--store", "postgres", *flags],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def test_a_database_that_is_missing_ends_the_start_with_its_host_and_never_its_password(self):
        for flags, environment, named in (
            (("--postgres", f"{POSTGRES.conninfo('none')} password=hidden"), {}, 'database "none" does not exist'),
            (("--postgres", "postgresql://me:hidden@127.0.0.1:1/x"), {}, '"127.0.0.1", port 1'),
            ((), {"STEPCAST_POSTGRES": "host=/nowhere password=hidden"}, "/nowhere"),
        ):
            with self.subTest(named=named):
                ended = self.start("--store-wait-seconds", "0.3", *flags, **environment)
                self.assertEqual(ended.returncode, 1, ended.stderr)
                self.assertIn(named, ended.stderr)
                self.assertNotIn("hidden", ended.stderr + ended.stdout)

    def test_a_string_that_cannot_be_read_is_wrong_usage(self):
        ended = self.start("--postgres", "hidden words")
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("--postgres", ended.stderr)
        self.assertNotIn("hidden", ended.stderr + ended.stdout)

    def test_a_database_of_a_newer_program_is_refused_at_once(self):
        conninfo = POSTGRES.new_database()
        POSTGRES.run(conninfo.rsplit("=", 1)[1], "CREATE TABLE stepcast_schema (version bigint); INSERT INTO stepcast_schema VALUES (1000)")
        # Were it waited for, the wait would be a hang.
        ended = self.start("--postgres", conninfo, "--store-wait-seconds", "1000")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("schema version 1000", ended.stderr)

    def test_a_database_whose_disk_is_full_is_named_and_goes_on_reading(self):
        if os.geteuid() != 0:
            self.skipTest("only root may mount")
        folder = os.path.join(POSTGRES.folder, "small")
        os.mkdir(folder)
        user = pwd.getpwnam("postgres")
        options = f"size=24m,uid={user.pw_uid},gid={user.pw_gid},mode=700"
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True, check=False)
        if mounted.returncode:
            self.skipTest(f"cannot mount: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)
        POSTGRES.run("template1", f"CREATE TABLESPACE small LOCATION '{folder}'")
        POSTGRES.run("template1", "CREATE DATABASE small TEMPLATE template0 TABLESPACE small")
        server = Server("--store", "postgres", "--postgres", POSTGRES.conninfo("small"))
        self.addCleanup(lambda: self.assertEqual(server.close(), 0))
        profile, stored = recorded(), []

        def fill():
            for at in range(10_000):
                request = store.CreateProfileRequest(profile_id=f"p{at}", profile=message({**profile, "batch_size": at + 1}))
                stored.append(server.profiles.CreateProfile(request, timeout=PATIENCE_SECONDS))

        with self.assertRaises(grpc.RpcError) as raised:
            fill()
        details = details_of(raised.exception)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.RESOURCE_EXHAUSTED, "DISK_FULL"), details.message)
        self.assertEqual((details.metadata["sqlstate"], details.retry_delay_seconds), ("53100", 0))
        self.assertIn("make its volume larger", details.message)
        self.assertEqual([server.http(path)[0] for path in ("/readyz", "/readyz/reads")], [503, 200])
        self.assertEqual(server.metric("stepcast_store_disk_full"), 1)
        for created in (stored[0], stored[-1]):
            self.assertEqual(server.profiles.GetProfile(store.GetProfileRequest(name=created.name)).etag, created.etag)
            server.profiles.DeleteProfile(store.DeleteProfileRequest(name=created.name))

    def test_a_database_that_comes_within_the_wait_is_used(self):
        conninfo = POSTGRES.conninfo("late")
        process = subprocess.Popen(
            [os.environ["STEPCASTD"], "--listen", "127.0.0.1:0", "--http-listen", "none", "--store", "postgres", "--store-wait-seconds", "60"],
            env={**os.environ, "STEPCAST_POSTGRES": conninfo},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        POSTGRES.run("template1", "CREATE DATABASE late TEMPLATE template0")
        self.assertIn("listening grpc", process.stdout.readline())

    def test_a_database_that_goes_away_in_the_middle_of_the_start_is_waited_for(self):
        for refused in range(3):
            with self.subTest(refused=refused):
                database = POSTGRES.new_database().rsplit("=", 1)[1]
                refusal = OneRefusal(POSTGRES.folder, refused)
                self.addCleanup(refusal.close)
                server = Server("--store", "postgres", "--postgres", f"host={refusal.folder} user=stepcast dbname={database}", "--store-wait-seconds", "30")
                # The last connection of the three is asked for by the threads of jobs, which may be after the server says that it serves.
                eventually(lambda: refusal.seen > refused, "no connection met the refusal")
                self.assertEqual(server.close(), 0)


if __name__ == "__main__":
    unittest.main()
