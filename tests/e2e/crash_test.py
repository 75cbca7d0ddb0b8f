"""kill -9 in the middle of uploads: what was acknowledged is there and whole, nothing else is half there."""

import random
import threading
import unittest

from contract import grpc, store
from sample import message, recorded
from stepcastd import PATIENCE_SECONDS, ServerTest

ROUNDS = 20
CLIENTS = 4
SEED = 20260102


class Uploader(threading.Thread):
    """Uploads one profile after another until the server is gone. `acknowledged`: name -> content."""

    def __init__(self, server, number, acknowledged_event):
        super().__init__()
        self.channel = server.new_channel()
        self.stub = type(server.profiles)(self.channel)
        self.number, self.acknowledged_event = number, acknowledged_event
        self.attempted, self.acknowledged, self.failed_with = {}, {}, None
        self.start()

    def run(self):
        content = message(recorded())
        at = 0
        while self.failed_with is None:
            at += 1
            name = f"p{self.number}-{at}"
            content.batch_size = self.number * 100000 + at
            self.attempted[f"profiles/{name}"] = content.SerializeToString(deterministic=True)
            try:
                stored = self.stub.UploadProfile(self._messages(name), timeout=PATIENCE_SECONDS)
                self.acknowledged[stored.name] = self.attempted[stored.name]
                self.acknowledged_event()
            except grpc.RpcError as error:
                self.failed_with = error.code()
        self.channel.close()

    def _messages(self, name):
        content = self.attempted[f"profiles/{name}"]
        yield store.UploadProfileRequest(header=store.UploadProfileRequest.Header(profile_id=name))
        for start in range(0, len(content), 4096):
            yield store.UploadProfileRequest(chunk=content[start : start + 4096])


def content_of(profile):
    for field in ("name", "digest", "etag", "create_time", "update_time", "size_bytes", "operation_count", "step_count"):
        profile.ClearField(field)
    return profile.SerializeToString(deterministic=True)


class CrashTest(ServerTest):
    def stored(self):
        """name -> content of everything that the server lists, each read whole."""
        found, token = {}, ""
        while True:
            page = self.server.profiles.ListProfiles(store.ListProfilesRequest(page_size=1000, page_token=token))
            for profile in page.profiles:
                found[profile.name] = content_of(self.server.profiles.GetProfile(store.GetProfileRequest(name=profile.name)))
            token = page.next_page_token
            if not token:
                return found

    def test_twenty_rounds_of_kill_nine_lose_nothing_acknowledged(self):
        kill_after = random.Random(SEED)
        attempted, acknowledged = {}, {}
        for round_number in range(ROUNDS):
            enough = threading.Semaphore(0)
            uploaders = [Uploader(self.server, round_number * CLIENTS + client + 1, enough.release) for client in range(CLIENTS)]
            # So many acknowledgements, and then at once: the other clients are in the middle of theirs.
            for _ in range(kill_after.randrange(1, 12)):
                self.assertTrue(enough.acquire(timeout=PATIENCE_SECONDS))
            self.server.kill()
            for uploader in uploaders:
                uploader.join()
                self.assertEqual(uploader.failed_with, grpc.StatusCode.UNAVAILABLE)
                attempted.update(uploader.attempted)
                acknowledged.update(uploader.acknowledged)
            self.server.start()
            found = self.stored()
            with self.subTest(round=round_number, seed=SEED):
                self.assertEqual({name for name in acknowledged if name not in found}, set(), "acknowledged, and lost")
                self.assertEqual({name for name, content in found.items() if attempted[name] != content}, set(), "not what was sent")
        self.assertGreater(len(acknowledged), ROUNDS)


if __name__ == "__main__":
    unittest.main()
