"""Every case of bad_input.json is refused with its code, its reason and the path of the field."""

import json
import os
import re
import unittest

from contract import details_of, from_json, grpc, prediction_request, store
from sample import message, small
from stepcastd import ServerTest

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bad_input.json"), encoding="utf-8") as file:
    CASES = json.load(file)


def changed(value, changes):
    """`value` with each path (`operations[0].name`) of `changes` set, or removed where it is set to null."""
    value = json.loads(json.dumps(value))
    for path, new in changes.items():
        *parents, last = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
        at = value
        for parent in parents:
            at = at[parent]
        if new is None:
            del at[last]
        elif isinstance(at, list) and last == len(at):
            at.append(new)
        else:
            at[last] = new
    return value


class BadInputTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(small()), profile_id="stored"))

    def call(self, case):
        """Makes the case's call, which must fail, and returns what the service says."""
        method, request = case["call"], case.get("request", {})
        if "profile" in case:
            field = "profile" if method == "CreateProfile" else "inline_profile"
            request = {**request, field: changed(small(), case["profile"])}
        streams = {"UploadProfile": store.UploadProfileRequest, "ImportProfile": store.ImportProfileRequest}
        with self.assertRaises(grpc.RpcError) as raised:
            if method in streams:
                getattr(self.server.profiles, method)(iter([from_json(streams[method](), each) for each in case["stream"]]))
            elif hasattr(store, f"{method}Request"):
                getattr(self.server.profiles, method)(from_json(getattr(store, f"{method}Request")(), request))
            elif method == "GenerateTrace":
                list(self.server.predictions.GenerateTrace(from_json(prediction_request(method), request)))
            else:
                getattr(self.server.predictions, method)(from_json(prediction_request(method), request))
        return details_of(raised.exception)

    def test_every_case_is_refused_for_its_reason_at_its_field(self):
        self.assertGreaterEqual(len(CASES), 40)
        self.assertEqual(len({case["name"] for case in CASES}), len(CASES))
        for case in CASES:
            with self.subTest(case["name"]):
                details = self.call(case)
                self.assertEqual(
                    (details.code.name, details.reason, details.domain), (case["code"], case["reason"], "stepcast"), (details.message, details.violations)
                )
                if "field" in case:
                    self.assertIn(case["field"], details.violations)
                    self.assertTrue(details.violations[case["field"]])
                if "says" in case:
                    self.assertIn(case["says"], details.message + " ".join(details.violations.values()))
        stored = self.server.profiles.ListProfiles(store.ListProfilesRequest()).profiles
        self.assertEqual([profile.name for profile in stored], ["profiles/stored"])

    def test_many_faults_are_cut_to_what_metadata_can_carry_and_the_rest_is_counted(self):
        bad = small()
        bad["operations"] = [{"name": "", "resource": "WORKER"} for _ in range(500)]
        bad["steps"] = [{"start_ns": [0] * 500, "end_ns": [1] * 500}]
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(bad)))
        details = details_of(raised.exception)
        self.assertEqual(details.reason, "PROFILE_INVALID")
        self.assertLessEqual(len(details.violations), 20)
        self.assertEqual(int(details.metadata["violations_left_out"]), 500 - len(details.violations))
        self.assertLess(sum(len(str(each)) for each in raised.exception.trailing_metadata()), 8192)


if __name__ == "__main__":
    unittest.main()
