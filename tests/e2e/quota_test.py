"""A client's share of the store: who is refused, who is not, and whose a profile is."""

import os
import signal
import tempfile
import unittest

from contract import details_of, grpc, prediction, store
from sample import message, small
from stepcastd import PATIENCE_SECONDS, Server, eventually

ANNA, BERT = "anna", "b" * 64  # the longest name there is


def metadata(client):
    return [("authorization", f"Bearer a-token-for-{client}")] if client else []


class QuotaTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stepcast-quota-")
        self.addCleanup(folder.cleanup)
        self.tokens = os.path.join(folder.name, "tokens.yaml")
        self.config = os.path.join(folder.name, "stepcastd.yaml")
        self.write(self.tokens, "".join(f"- {{name: {name}, role: writer, token: a-token-for-{name}}}\n" for name in (ANNA, BERT)))

    @staticmethod
    def write(path, text):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    def serve(self, *flags):
        self.server = Server("--tokens", self.tokens, *flags)
        self.addCleanup(lambda: self.assertEqual(self.server.close(), 0))

    def create(self, client, batch_size, **fields):
        request = store.CreateProfileRequest(profile=message(small(batch_size=batch_size)), **fields)
        return self.server.profiles.CreateProfile(request, metadata=metadata(client), timeout=PATIENCE_SECONDS)

    def upload(self, client, batch_size):
        requests = [
            store.UploadProfileRequest(header=store.UploadProfileRequest.Header()),
            store.UploadProfileRequest(chunk=message(small(batch_size=batch_size)).SerializeToString()),
        ]
        return self.server.profiles.UploadProfile(iter(requests), metadata=metadata(client), timeout=PATIENCE_SECONDS)

    def import_model(self, client):
        options = store.ModelZooOptions(model="resnet50", platform=message(small()).platform)
        header = store.ImportProfileRequest.Header(model_zoo=options)
        return self.server.profiles.ImportProfile(iter([store.ImportProfileRequest(header=header)]), metadata=metadata(client), timeout=PATIENCE_SECONDS).profile

    def delete(self, client, name):
        self.server.profiles.DeleteProfile(store.DeleteProfileRequest(name=name), metadata=metadata(client), timeout=PATIENCE_SECONDS)

    def owner(self, name):
        return self.server.profiles.GetProfile(store.GetProfileRequest(name=name), metadata=metadata(BERT), timeout=PATIENCE_SECONDS).owner

    def refused(self, call, *arguments):
        with self.assertRaises(grpc.RpcError) as raised:
            call(*arguments)
        details = details_of(raised.exception)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.RESOURCE_EXHAUSTED, "CLIENT_QUOTA_EXCEEDED"))
        self.assertEqual(details.retry_delay_seconds, 0)
        return details

    def test_who_has_its_share_is_refused_by_name_until_it_deletes(self):
        self.serve("--max-client-profiles", "2")
        first = self.create(ANNA, 1)
        self.upload(ANNA, 2)
        for store_another in (lambda: self.create(ANNA, 3), lambda: self.upload(ANNA, 3), lambda: self.import_model(ANNA)):
            details = self.refused(store_another)
            self.assertEqual(details.metadata, {"client": ANNA, "max_client_profiles": "2", "used": "2", "wanted": "1"})
            self.assertEqual(details.quota_subjects, ["client:anna"])
            for part in (ANNA, "max_client_profiles", "2"):
                self.assertIn(part, details.message)
        self.assertEqual(self.server.metric("stepcast_rejections_total", reason="CLIENT_QUOTA_EXCEEDED"), 3)

        # The others have theirs, and what is not stored needs none.
        self.assertEqual((self.upload(BERT, 3).owner, self.import_model(BERT).owner), (BERT, BERT))
        self.assertEqual(self.refused(self.create, BERT, 4).quota_subjects, [f"client:{BERT}"])
        inline = prediction.PredictThroughputRequest(inline_profile=message(small(batch_size=9)), worker_counts=[1])
        self.assertEqual(len(self.server.predictions.PredictThroughput(inline, metadata=metadata(ANNA), timeout=PATIENCE_SECONDS).predictions), 1)

        self.delete(ANNA, first.name)
        self.assertEqual(self.create(ANNA, 5).owner, ANNA)
        self.refused(self.create, ANNA, 6)

    def test_what_is_there_already_is_the_first_ones_and_costs_the_second_nothing(self):
        self.serve("--max-client-profiles", "1")
        first = self.create(ANNA, 1)
        self.assertEqual(self.create(BERT, 1), first)
        self.assertEqual(self.upload(ANNA, 1), first)
        self.create(BERT, 2)
        self.delete(BERT, first.name)
        self.create(ANNA, 3)

    def test_bytes_are_counted_as_profiles_are(self):
        self.serve("--max-client-store-bytes", "2000")
        size = self.create(ANNA, 1).size_bytes
        fit = 2000 // size
        self.assertGreater(fit, 1)
        for batch_size in range(2, fit + 1):
            self.assertEqual(self.create(ANNA, batch_size).size_bytes, size)
        details = self.refused(self.create, ANNA, fit + 1)
        self.assertEqual(details.metadata, {"client": ANNA, "max_client_store_bytes": "2000", "used": str(fit * size), "wanted": str(size)})
        self.create(BERT, fit + 1)

    def test_a_server_that_was_killed_knows_whose_is_what(self):
        self.serve("--max-client-profiles", "1")
        name = self.create(ANNA, 1).name
        self.server.kill()
        self.server.start()
        self.assertEqual(self.owner(name), ANNA)
        self.refused(self.create, ANNA, 2)
        self.create(BERT, 2)
        self.delete(ANNA, name)
        self.create(ANNA, 3)

    def test_a_signal_puts_new_limits_of_the_store_in_force(self):
        self.write(self.config, "max-client-profiles: 1\n")
        self.serve("--config", self.config)
        self.create(ANNA, 1)
        self.refused(self.create, ANNA, 2)
        self.write(self.config, "max-client-profiles: 2\nmax-profiles: 3\n")
        self.server.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.server.metric("stepcast_reloads_total", outcome="ok") == 1, "the reload is counted")
        self.assertNotIn("wait for a restart", self.server.errors())
        self.assertEqual(self.server.metric("stepcast_store_profiles_max"), 3)
        self.create(ANNA, 2)
        self.refused(self.create, ANNA, 3)
        self.create(BERT, 3)
        with self.assertRaises(grpc.RpcError) as full:
            self.create(BERT, 4)
        self.assertEqual(details_of(full.exception).reason, "STORE_FULL")

    def test_clients_without_a_name_have_no_share(self):
        self.server = Server("--max-client-profiles", "1", "--max-client-store-bytes", "1")
        self.addCleanup(lambda: self.assertEqual(self.server.close(), 0))
        for batch_size in range(1, 4):
            self.assertEqual(self.create(None, batch_size).owner, "")


if __name__ == "__main__":
    unittest.main()
