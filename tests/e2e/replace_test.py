"""A stored profile is replaced in place: by UpdateProfile, by an upload, by the command line; and nobody who reads meanwhile finds none."""

import json
import os
import subprocess
import threading
import unittest
import uuid

from google.protobuf import field_mask_pb2

from contract import details_of, from_json, grpc, prediction, profile_pb2, store
from patience import eventually
from sample import message, recorded, small
from stepcastd import PATIENCE_SECONDS, Server, ServerTest

NAME = "profiles/job"


def named(profile, **fields):
    """The message of a profile that names what it replaces."""
    wanted = message(profile)
    wanted.name = NAME
    for field, value in fields.items():
        setattr(wanted, field, value)
    return wanted


def slower(**changes):
    """Another profile of the same shape: its computation takes twice as long."""
    return small(steps=[{"start_ns": [0, 10000000, 50000000, 60000000], "end_ns": [10000000, 50000000, 60000000, 62000000]}], **changes)


class ReplaceTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.first = self.create(small(labels={"team": "a"}))

    def create(self, profile, profile_id="job"):
        request = store.CreateProfileRequest(profile_id=profile_id, profile=message(profile))
        return self.server.profiles.CreateProfile(request, timeout=PATIENCE_SECONDS)

    def get(self, **options):
        return self.server.profiles.GetProfile(store.GetProfileRequest(name=NAME, **options), timeout=PATIENCE_SECONDS)

    def update(self, profile, mask=None, **fields):
        request = store.UpdateProfileRequest(profile=profile, **fields)
        if mask is not None:
            request.update_mask.CopyFrom(field_mask_pb2.FieldMask(paths=mask))
        return self.server.profiles.UpdateProfile(request, timeout=PATIENCE_SECONDS)

    def upload(self, profile, **header):
        bytes_ = message(profile).SerializeToString()
        chunks = [store.UploadProfileRequest(chunk=bytes_[at : at + 100_000]) for at in range(0, len(bytes_), 100_000)]
        first = store.UploadProfileRequest(header=store.UploadProfileRequest.Header(**header))
        return self.server.profiles.UploadProfile(iter([first, *chunks]), timeout=PATIENCE_SECONDS)

    def refused(self, call, *arguments, **fields):
        with self.assertRaises(grpc.RpcError) as raised:
            call(*arguments, **fields)
        return details_of(raised.exception)

    def test_the_new_one_has_the_name_and_the_birthday_and_is_what_is_predicted_with(self):
        def ask():
            return self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile=NAME, worker_counts=[1]), timeout=PATIENCE_SECONDS)

        before = ask()
        self.assertEqual(ask().predictions, before.predictions)
        replaced = self.update(named(slower()))
        self.assertEqual((replaced.name, replaced.create_time), (NAME, self.first.create_time))
        self.assertNotEqual((replaced.etag, replaced.digest), (self.first.etag, self.first.digest))
        self.assertGreater(replaced.update_time.ToNanoseconds(), self.first.update_time.ToNanoseconds())
        self.assertEqual(self.first.update_time, self.first.create_time)
        self.assertEqual(self.get().steps[0].end_ns[3], 62000000)
        self.assertEqual(self.get(view=store.BASIC), replaced)
        # The very same bytes are asked, whose answer was kept.
        after = ask()
        self.assertEqual(after.profile_digest, replaced.digest)
        self.assertLess(after.predictions[0].examples_per_second, before.predictions[0].examples_per_second)
        # Labels and display name are people's: where the new one says nothing of them they stay.
        self.assertEqual((dict(replaced.labels), replaced.display_name), ({"team": "a"}, "small"))

    def test_fields_that_are_not_asked_for_stay(self):
        relabelled = self.update(profile_pb2.Profile(name=NAME, labels={"team": "b"}))
        self.assertEqual((dict(relabelled.labels), relabelled.digest), ({"team": "b"}, self.first.digest))
        self.assertNotEqual(relabelled.etag, self.first.etag)
        batch = self.update(named(slower(batch_size=32, labels={"team": "c"})), mask=["batch_size", "etag", "digest"])
        self.assertEqual((batch.batch_size, dict(batch.labels)), (32, {"team": "b"}))
        self.assertEqual(self.get().steps[0].end_ns[3], 42000000)
        cleared = self.update(profile_pb2.Profile(name=NAME), mask=["labels"])
        self.assertEqual(dict(cleared.labels), {})
        whole = self.update(named(slower(display_name="")), mask=["*"])
        self.assertEqual((whole.display_name, self.get().steps[0].end_ns[3]), ("", 62000000))
        same = self.update(named(slower(display_name="")), mask=["*"])
        self.assertEqual(same, whole)

    def test_an_etag_guards_what_others_changed_and_a_repetition_is_known(self):
        request_id = str(uuid.uuid4())
        second = self.update(named(slower(), etag=self.first.etag), request_id=request_id)
        self.assertEqual(self.update(named(slower(), etag=self.first.etag), request_id=request_id), second)
        details = self.refused(self.update, named(small(batch_size=9), etag=self.first.etag))
        self.assertEqual((details.code, details.reason, details.resource), (grpc.StatusCode.ABORTED, "ETAG_MISMATCH", NAME))
        details = self.refused(self.update, named(small(batch_size=9)), request_id=request_id)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_ID_REUSED"))
        self.assertEqual(self.get(view=store.BASIC), second)
        # Names and labels are content of such a request, too: one that sets others is not answered as done.
        named_once = {"mask": ["display_name"], "request_id": str(uuid.uuid4())}
        third = self.update(named(slower(display_name="one")), **named_once)
        self.assertEqual(self.update(named(slower(display_name="one")), **named_once), third)
        details = self.refused(self.update, named(slower(display_name="two")), **named_once)
        self.assertEqual(details.reason, "REQUEST_ID_REUSED")
        self.update(profile_pb2.Profile(name=NAME, labels={"team": "d"}), mask=["labels"])
        self.assertEqual(self.update(named(slower(display_name="one")), **named_once).etag, third.etag)

    def test_a_repeated_upload_that_says_other_names_is_not_answered_as_done(self):
        header = {"profile_id": "job", "allow_replace": True, "request_id": str(uuid.uuid4())}
        first = self.upload(slower(labels={"team": "a"}), **header)
        self.assertEqual(self.upload(slower(labels={"team": "a"}), **header), first)
        details = self.refused(self.upload, slower(labels={"team": "b"}), **header)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_ID_REUSED"))
        self.assertEqual(self.get(view=store.BASIC), first)

    def test_of_updates_at_once_with_one_etag_one_wins(self):
        calls = [
            self.server.profiles.UpdateProfile.future(
                store.UpdateProfileRequest(profile=named(small(batch_size=batch), etag=self.first.etag)), timeout=PATIENCE_SECONDS
            )
            for batch in range(100, 120)
        ]
        codes = [call.code() for call in calls]
        self.assertEqual((codes.count(grpc.StatusCode.OK), codes.count(grpc.StatusCode.ABORTED)), (1, 19))
        # Without an etag all of them come after one another, in parts as well.
        masks = [{"mask": ["batch_size"]}, {"mask": ["labels"]}] * 5
        threads = [threading.Thread(target=self.update, args=(named(small(batch_size=7, labels={"n": str(i)})),), kwargs=each) for i, each in enumerate(masks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.get().batch_size, 7)
        self.assertIn("n", self.get().labels)

    def test_what_is_not_there_is_stored_only_where_that_is_allowed(self):
        nobody = named(small())
        nobody.name = "profiles/jop"
        details = self.refused(self.update, nobody)
        self.assertEqual((details.code, details.reason, details.resource), (grpc.StatusCode.NOT_FOUND, "PROFILE_NOT_FOUND", "profiles/jop"))
        self.assertEqual(details.metadata["similar"], "profiles/job")
        nobody.etag = "e"
        details = self.refused(self.update, nobody, allow_missing=True)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.ABORTED, "ETAG_MISMATCH"))
        nobody.etag = ""
        checked = self.update(nobody, allow_missing=True, validate_only=True)
        self.assertEqual((checked.name, checked.etag), ("profiles/jop", ""))
        stored = self.update(nobody, mask=["labels"], allow_missing=True)
        self.assertEqual((stored.name, stored.operation_count), ("profiles/jop", 4))

    def test_only_checking_changes_nothing(self):
        checked = self.update(named(slower()), validate_only=True)
        self.assertNotEqual(checked.digest, self.first.digest)
        self.assertEqual(self.get(view=store.BASIC), self.first)
        details = self.refused(self.update, named(slower(), etag="e"), validate_only=True)
        self.assertEqual(details.reason, "ETAG_MISMATCH")

    def test_a_profile_beyond_a_message_is_replaced_by_an_upload(self):
        large = recorded()
        step = large["steps"][0]
        large["steps"] = [step] * 9_900
        size = len(message(large).SerializeToString())
        self.assertGreater(size, 4 * 2**20)
        details = self.refused(self.upload, large, profile_id="job")
        self.assertEqual(details.code, grpc.StatusCode.ALREADY_EXISTS)
        replaced = self.upload(large, profile_id="job", allow_replace=True, etag=self.first.etag)
        self.assertEqual((replaced.name, replaced.create_time, replaced.step_count), (NAME, self.first.create_time, len(large["steps"])))
        self.assertEqual(dict(replaced.labels), {}, "an upload is the whole profile")
        details = self.refused(self.upload, small(), profile_id="job", allow_replace=True, etag=self.first.etag)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.ABORTED, "ETAG_MISMATCH"))
        self.assertEqual(self.upload(small(), profile_id="new", allow_replace=True).name, "profiles/new")
        details = self.refused(self.upload, small(), allow_replace=True)
        self.assertEqual((details.code, list(details.violations)), (grpc.StatusCode.INVALID_ARGUMENT, ["header.profile_id"]))
        details = self.refused(self.upload, small(), profile_id="job", etag="e")
        self.assertEqual((details.code, list(details.violations)), (grpc.StatusCode.INVALID_ARGUMENT, ["header.etag"]))

    def test_an_import_replaces_too(self):
        options = store.ModelZooOptions(model="alexnet", platform=message(small()).platform)
        header = store.ImportProfileRequest.Header(profile_id="job", allow_replace=True, model_zoo=options)
        imported = self.server.profiles.ImportProfile(iter([store.ImportProfileRequest(header=header)]), timeout=PATIENCE_SECONDS).profile
        self.assertEqual((imported.name, imported.model, imported.create_time), (NAME, "alexnet", self.first.create_time))

    def test_who_reads_during_a_thousand_replacements_never_finds_none(self):
        done, failures, reads = threading.Event(), [], [0, 0]

        def read(at):
            while not done.is_set():
                try:
                    batch = self.get().batch_size
                    predicted = self.server.predictions.PredictThroughput(
                        prediction.PredictThroughputRequest(profile=NAME, worker_counts=[1]), timeout=PATIENCE_SECONDS
                    )
                    if batch not in (8, 16) or len(predicted.predictions) != 1:
                        failures.append(batch)
                    reads[at] += 1
                except grpc.RpcError as error:
                    failures.append(error)
                    return

        readers = [threading.Thread(target=read, args=(at,)) for at in range(2)]
        for reader in readers:
            reader.start()
        both = [named(small()), named(small(batch_size=16))]
        for number in range(1, 1001):
            self.update(both[number % 2])
        done.set()
        for reader in readers:
            reader.join()
        self.assertEqual(failures, [])
        self.assertGreater(min(reads), 0)

    def test_the_command_line_replaces(self):
        def program(*arguments):
            done = subprocess.run(
                [os.environ["STEPCAST"], "--server", self.server.address, *arguments],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
            )
            return done.returncode, done.stdout, done.stderr

        path = os.path.join(self.server.folder, "slower.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(slower(), file)
        upload = ("profile", "upload", path, "--id", "job")
        status, _, errors = program(*upload)
        self.assertEqual(status, 1)
        self.assertIn("ALREADY_EXISTS", errors)
        status, out, errors = program(*upload, "--replace", "--etag", self.first.etag, "--output", "json")
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(json.loads(out)["createTime"], self.first.create_time.ToJsonString())
        status, _, errors = program(*upload, "--replace", "--etag", self.first.etag)
        self.assertEqual(status, 1)
        self.assertIn("ABORTED: ETAG_MISMATCH", errors)
        self.assertEqual(program("profile", "zoo", "alexnet", "--bandwidth", "1Gbit/s", "--id", "job", "--replace")[0], 0)
        self.assertEqual(self.get().model, "alexnet")
        for misuse in (("profile", "upload", path, "--replace"), (*upload, "--etag", "e"), ("profile", "zoo", "alexnet", "--replace"),
                       ("profile", "zoo", "alexnet", "--id", "job", "--replace", "--save", "/dev/null")):
            status, _, errors = program(*misuse)
            self.assertEqual(status, 2, misuse)
            self.assertIn("--", errors)


class KillTest(unittest.TestCase):
    def test_killed_while_it_replaces_it_has_the_former_or_the_new_one(self):
        server = Server()
        self.addCleanup(lambda: self.assertEqual(server.close(), 0))
        profile = recorded()
        stored = 1
        for round_ in range(5):
            acknowledged, ended = [stored], threading.Event()

            def replace(start=stored, acknowledged=acknowledged, ended=ended, stub=server.profiles):
                try:
                    for batch in range(start + 1, start + 10_000):
                        profile["batch_size"] = batch
                        stub.UpdateProfile(store.UpdateProfileRequest(profile=named(profile), allow_missing=True), timeout=PATIENCE_SECONDS)
                        acknowledged.append(batch)
                except (grpc.RpcError, ValueError):
                    # The latter where a call begins on a channel that closed with its server.
                    ended.set()

            writer = threading.Thread(target=replace)
            writer.start()
            eventually(lambda: len(acknowledged) >= 5 + 7 * round_ or not writer.is_alive(), "not enough profiles were replaced", pause=0.002)
            server.kill()
            writer.join()
            self.assertTrue(ended.is_set())
            server.start()
            found = server.profiles.GetProfile(store.GetProfileRequest(name=NAME), timeout=PATIENCE_SECONDS).batch_size
            self.assertIn(found, (acknowledged[-1], acknowledged[-1] + 1))
            stored = found


if __name__ == "__main__":
    unittest.main()
