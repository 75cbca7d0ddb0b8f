"""What becomes of the embedded store's medium, and what the real server says of it."""

import json
import os
import sqlite3
import subprocess
import unittest

from contract import details_of, grpc, health_pb2, prediction, store
from sample import message, recorded, small
from patience import PASSING_SECONDS
from stepcastd import PATIENCE_SECONDS, ServerTest


class StoreFaultTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.data = os.path.join(self.server.folder, "data")
        self.file = os.path.join(self.data, "profiles.sqlite3")

    def create(self, profile_id, profile=None, timeout=PATIENCE_SECONDS):
        request = store.CreateProfileRequest(profile_id=profile_id, profile=message(profile or small()))
        return self.server.profiles.CreateProfile(request, timeout=timeout)

    def get(self, name):
        return self.server.profiles.GetProfile(store.GetProfileRequest(name=name, view=store.FULL), timeout=PATIENCE_SECONDS)

    def refused(self, call):
        with self.assertRaises(grpc.RpcError) as raised:
            call()
        return details_of(raised.exception)

    def unavailable(self, call):
        """What the call says about the store that cannot serve now."""
        details = self.refused(call)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE"), details.message)
        self.assertGreater(details.retry_delay_seconds, 0)
        return details.message

    def stop(self):
        self.server.channel.close()
        self.server.terminate()
        self.assertEqual(self.server.wait(), 0)
        self.server.process.stdout.close()

    def mount(self, *options):
        """A file system of the data directory's own, in place of the directory."""
        if os.geteuid() != 0:
            self.skipTest("only root may mount")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", self.data], capture_output=True, text=True, check=False)
        if mounted.returncode:
            self.skipTest(f"cannot mount: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.data], capture_output=True, check=False)

    def failed_start(self):
        """The complaint of a server that does not start on the directory."""
        ended = subprocess.run(
            [os.environ["STEPCASTD"], "--listen", "127.0.0.1:0", "--http-listen", "none", "--data-dir", self.data],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn(self.data, ended.stderr)
        return ended.stderr

    def delete(self, name):
        self.server.profiles.DeleteProfile(store.DeleteProfileRequest(name=name), timeout=PATIENCE_SECONDS)

    def full(self, call):
        """What the call says about the disk that takes no more."""
        details = self.refused(call)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.RESOURCE_EXHAUSTED, "DISK_FULL"), details.message)
        self.assertEqual(details.retry_delay_seconds, 0, "waiting frees nothing")
        for part in (self.data, "delete profiles", "make its volume larger"):
            self.assertIn(part, details.message)
        self.assertEqual(details.metadata["directory"], self.data)
        return details

    def serve_on(self, size):
        self.stop()
        self.mount(f"size={size}")
        self.server.start()

    def fill(self):
        """Stores profiles until the disk is full, and returns them."""
        profile, stored = recorded(), []

        def store_more():
            for at in range(10_000):
                profile["batch_size"] = at + 1
                stored.append(self.create(f"p{at}", profile))

        self.full(store_more)
        self.assertGreater(len(stored), 3)
        return stored

    def fill_up(self):
        """Takes what the disk has left, to the last byte, with a file of somebody else's."""
        with open(os.path.join(self.data, "of-somebody-else"), "ab", buffering=0) as file:
            for block in (1 << 16, 1 << 12, 1 << 9, 1):
                try:
                    while file.write(b"x" * block) == block:
                        pass
                except OSError:
                    pass
        self.assertEqual(os.statvfs(self.data).f_bavail, 0)

    def readiness(self):
        return [self.server.http(path)[0] for path in ("/readyz", "/readyz/reads")], self.server.metric("stepcast_store_disk_full")

    def test_a_full_disk_refuses_by_name_keeps_what_is_there_and_is_cleared_by_deletions(self):
        for size in ("2m", "9m"):
            with self.subTest(size):
                self.serve_on(size)
                self.assertEqual(self.readiness(), ([200, 200], 0))
                stored = self.fill()
                self.assertEqual(self.readiness(), ([503, 200], 1))
                self.assertIn("delete profiles", self.server.http("/readyz")[1])
                self.assertEqual(self.server.health.Check(health_pb2.HealthCheckRequest()).status, health_pb2.HealthCheckResponse.SERVING)
                self.assertEqual(self.server.metric("stepcast_rejections_total", reason="DISK_FULL"), 1)
                for created in stored:
                    self.assertEqual(self.get(created.name).etag, created.etag)
                asked = prediction.PredictThroughputRequest(profile=stored[0].name, worker_counts=[1])
                self.assertEqual(len(self.server.predictions.PredictThroughput(asked, timeout=PATIENCE_SECONDS).predictions), 1)
                larger = message(recorded())
                larger.name = stored[0].name
                for step in list(larger.steps) * 3:
                    larger.steps.append(step)
                self.full(lambda: self.server.profiles.UpdateProfile(store.UpdateProfileRequest(profile=larger), timeout=PATIENCE_SECONDS))
                self.assertEqual(self.get(stored[0].name).etag, stored[0].etag)
                half = len(stored) // 2
                for created in stored[:half]:
                    self.delete(created.name)
                self.assertEqual(self.create("afterwards", recorded()).name, "profiles/afterwards")
                self.assertEqual(self.readiness(), ([200, 200], 0))
                for created in stored[half:]:
                    self.assertEqual(self.get(created.name).etag, created.etag)
                for _ in range(3):  # what deletions free is used again, and again
                    for created in self.refill():
                        self.delete(created.name)
                self.stop()
                subprocess.run(["umount", "-l", self.data], check=True)
                self.server.start()

    def refill(self):
        profile, stored = recorded(), []
        for at in range(3):
            profile["batch_size"] = 5000 + at
            stored.append(self.create(f"again{at}", profile))
        return stored

    def test_a_disk_that_others_have_filled_to_the_last_byte_lets_every_profile_be_deleted(self):
        self.serve_on("8m")
        profile, names = recorded(), []
        for at in range(20):
            profile["batch_size"] = at + 1
            names.append(self.create(f"p{at}", profile).name)
        self.fill_up()
        self.full(lambda: self.create("b", recorded("resnet50_16")))
        self.assertEqual(self.readiness(), ([503, 200], 1))
        # A server that is started on it serves, too, without the room that the log gave back.
        self.stop()
        self.fill_up()
        self.server.start()
        self.assertEqual(self.get(names[0]).name, names[0])
        for name in names[1:]:
            self.delete(name)
        self.assertEqual(len(self.server.profiles.ListProfiles(store.ListProfilesRequest()).profiles), 1)
        os.remove(os.path.join(self.data, "of-somebody-else"))
        self.create("c", recorded("resnet50_16"))
        self.assertIn("reserve", os.listdir(self.data), "taken again")

    def test_a_disk_that_was_made_larger_is_ready_by_itself(self):
        self.serve_on("3m")
        self.fill()
        self.assertEqual(self.readiness(), ([503, 200], 1))
        subprocess.run(["mount", "-o", "remount,size=64m", self.data], check=True)
        self.assertEqual(self.readiness(), ([200, 200], 0))
        self.create("afterwards", recorded())

    def test_the_command_line_says_what_to_do_and_not_that_the_server_may_not_run(self):
        self.serve_on("3m")
        self.fill()
        path = os.path.join(self.server.folder, "profile.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(recorded(), file)
        command = [os.environ["STEPCAST"], "--server", self.server.address, "profile", "upload", path, "--id", "another"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"error: RESOURCE_EXHAUSTED: DISK_FULL: the disk of the data directory {self.data} is full: delete profiles", done.stderr)
        for part in ("hint", "try again", "running"):
            self.assertNotIn(part, done.stderr)
        self.assertEqual(self.server.metric("grpc_server_started_total", grpc_method="UploadProfile"), 1, "not called again")

    def test_an_import_and_a_backup_name_the_disk_that_is_full(self):
        self.serve_on("8m")
        options = store.PyTorchTraceOptions(model="m", batch_size=1, platform=message(small()).platform)
        header = store.ImportProfileRequest(header=store.ImportProfileRequest.Header(pytorch=options))
        chunks = [store.ImportProfileRequest(chunk=os.urandom(1 << 20)) for _ in range(16)]
        details = self.refused(lambda: self.server.profiles.ImportProfile(iter([header, *chunks]), timeout=PATIENCE_SECONDS))
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.RESOURCE_EXHAUSTED, "DISK_FULL"), details.message)
        self.assertIn(self.data, details.message)
        for at in range(10):
            self.create(f"p{at}", {**recorded(), "batch_size": at + 1})
        copies = os.path.join(self.server.folder, "copies")
        os.mkdir(copies)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", copies], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", copies], check=True)
        target = os.path.join(copies, "backup.sqlite3")
        command = [os.environ["STEPCASTD"], "--backup-to", target, "--data-dir", self.data]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"the disk of {target} is full: free some of it", done.stderr)
        self.assertEqual(os.listdir(copies), [])

    def test_a_directory_that_cannot_be_written_is_no_start(self):
        self.stop()
        self.mount("size=1m", "ro")
        self.assertIn("Read-only file system", self.failed_start())
        subprocess.run(["mount", "-o", "remount,rw", self.data], check=True)
        self.server.start()
        self.create("afterwards")

    def test_a_file_that_is_no_database_is_no_start(self):
        self.stop()
        with open(self.file, "r+b") as file:
            file.write(b"garbage" * 100)
        self.assertIn("not a database", self.failed_start())
        os.remove(self.file)
        self.server.start()

    def test_a_database_damaged_while_it_is_served_is_data_loss_and_not_ready(self):
        created = self.create("a", recorded())
        self.stop()  # so that nothing is in the log or in memory
        self.server.start()
        with open(self.file, "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
        details = self.refused(lambda: self.get(created.name))
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.DATA_LOSS, "STORE_CORRUPT"), details.message)
        self.assertEqual(self.refused(lambda: self.create("b")).code, grpc.StatusCode.DATA_LOSS)
        status, why = self.server.http("/readyz")
        self.assertEqual(status, 503, why)

    def test_a_damaged_content_is_named_and_the_others_are_served(self):
        damaged, whole = self.create("damaged"), self.create("whole", small(batch_size=9))
        self.stop()
        with sqlite3.connect(self.file) as database:
            database.execute("UPDATE contents SET bytes = x'00' WHERE profile = (SELECT sequence FROM profiles WHERE id = 'damaged')")
        database.close()
        self.server.start()
        details = self.refused(lambda: self.get(damaged.name))
        self.assertEqual((details.code, details.reason, details.metadata["profile"]), (grpc.StatusCode.DATA_LOSS, "PROFILE_CORRUPT", "damaged"))
        self.assertEqual(self.get(whole.name).etag, whole.etag)
        self.assertEqual(self.server.http("/readyz")[0], 200)

    def test_a_file_that_is_removed_takes_no_more_profiles(self):
        self.create("a")
        for name in os.listdir(self.data):
            os.remove(os.path.join(self.data, name))
        self.assertIn("was removed", self.unavailable(lambda: self.create("b")))
        self.assertEqual(self.server.http("/readyz")[0], 503)

    def test_a_lock_that_another_holds_too_long_is_named_and_reads_do_not_wait_for_it(self):
        created = self.create("a")
        other = sqlite3.connect(self.file, isolation_level=None)
        self.addCleanup(other.close)
        other.execute("BEGIN IMMEDIATE")
        late = self.refused(lambda: self.create("b", timeout=PASSING_SECONDS))
        self.assertEqual(late.code, grpc.StatusCode.DEADLINE_EXCEEDED)
        waiting = self.server.profiles.CreateProfile.future(
            store.CreateProfileRequest(profile_id="c", profile=message(small(batch_size=9))), timeout=PATIENCE_SECONDS
        )
        self.assertEqual(self.get(created.name).etag, created.etag)
        self.assertFalse(waiting.done())
        self.assertIn("database is locked", self.unavailable(waiting.result))
        other.execute("ROLLBACK")
        self.create("d", small(batch_size=10))


if __name__ == "__main__":
    unittest.main()
