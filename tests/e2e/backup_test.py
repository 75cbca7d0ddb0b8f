"""Copies of the embedded store, made and begun from by the real program."""

import os
import subprocess
import threading
import unittest

from contract import store
from sample import message, small
from stepcastd import PATIENCE_SECONDS, Server, ServerTest


def copy(*flags):
    """(exit status, stderr) of a stepcastd that copies."""
    done = subprocess.run([os.environ["STEPCASTD"], *flags], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    return done.returncode, done.stderr


class BackupTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.data = os.path.join(self.server.folder, "data")
        self.backup = os.path.join(self.server.folder, "backup")

    def test_a_backup_under_uploads_has_all_that_was_acknowledged_and_can_be_served(self):
        acknowledged, enough, stop = [], threading.Event(), threading.Event()

        def upload():
            while not stop.is_set():
                profile = message(small(batch_size=len(acknowledged) + 1))
                acknowledged.append(self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=profile)).name)
                if len(acknowledged) == 20:
                    enough.set()

        uploader = threading.Thread(target=upload)
        uploader.start()
        self.assertTrue(enough.wait(PATIENCE_SECONDS))
        before = set(acknowledged)
        copied = copy("--backup-to", self.backup, "--data-dir", self.data)
        stop.set()
        uploader.join()
        self.assertEqual(copied, (0, ""))

        restored = Server()
        self.addCleanup(restored.close)
        restored.channel.close()
        restored.terminate()
        restored.wait()
        os.rename(os.path.join(restored.folder, "data"), os.path.join(restored.folder, "empty"))
        self.assertEqual(copy("--restore-from", self.backup, "--data-dir", os.path.join(restored.folder, "data")), (0, ""))
        restored.process.stdout.close()
        restored.start()
        listed = {profile.name for profile in restored.profiles.ListProfiles(store.ListProfilesRequest(page_size=1000)).profiles}
        self.assertEqual(before - listed, set(), "acknowledged before the backup, and not in it")
        self.assertEqual(listed - set(acknowledged), set())

    def test_what_would_be_lost_is_refused(self):
        self.assertEqual(copy("--backup-to", self.backup, "--data-dir", self.data), (0, ""))
        status, errors = copy("--backup-to", self.backup, "--data-dir", self.data)
        self.assertEqual(status, 1)
        self.assertIn("is there already", errors)
        status, errors = copy("--restore-from", self.backup, "--data-dir", self.data)
        self.assertEqual(status, 1)
        self.assertIn("is in use by another process", errors)
        status, errors = copy("--restore-from", self.backup, "--backup-to", self.backup)
        self.assertEqual(status, 2)


if __name__ == "__main__":
    unittest.main()
