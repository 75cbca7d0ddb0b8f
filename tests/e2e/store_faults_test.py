"""What becomes of the embedded store's medium, and what the real server says of it."""

import os
import sqlite3
import subprocess
import unittest

from contract import details_of, grpc, store
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
        self.addCleanup(subprocess.run, ["umount", "-l", self.data], check=True)

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

    def test_a_full_disk_refuses_by_name_keeps_what_is_there_and_goes_on_once_there_is_room(self):
        self.stop()
        self.mount("size=2m")
        self.server.start()
        profile, stored = recorded(), []

        def fill():
            for at in range(1000):
                profile["batch_size"] = at + 1
                stored.append(self.create(f"p{at}", profile))

        self.assertIn("disk", self.unavailable(fill))
        self.assertTrue(stored)
        for created in stored:
            self.assertEqual(self.get(created.name).etag, created.etag)
        self.assertEqual(self.server.http("/readyz")[0], 200, "what is there can be asked for")
        subprocess.run(["mount", "-o", "remount,size=64m", self.data], check=True)
        self.create("afterwards")

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
