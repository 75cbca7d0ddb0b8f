"""Files that are not what they should be, pipes instead of files, and names that would drive a terminal: the programs as people run them."""

import gzip
import json
import os
import subprocess
import tempfile
import threading
import unittest

import grpc
from contract import details_of, store
from sample import message, small
from stepcastd import PATIENCE_SECONDS, ServerTest

LAYERS = b"node1 -- Linear(a) -- forward_compute_time=2.000, backward_compute_time=4.000, activation_size=1.0, parameter_size=4000.000\n"
MARK = b"\xef\xbb\xbf"
IMPORT = ("--batch-size", "8", "--bandwidth", "1MB/s")

# What no command takes, and why.
BAD = {
    "empty": (b"", "the file is empty"),
    "utf16": ("a\t1\n".encode("utf-16"), "the file is text in UTF-16: save it as UTF-8"),
    "utf32": ("a\t1\n".encode("utf-32"), "the file is text in UTF-32: save it as UTF-8"),
    "page": (b"<!DOCTYPE html>\n<html><title>Sign in</title></html>", "the file is a page of HTML"),
    "zip": (b"PK\x03\x04\x14\0\0\0", "the file is a zip archive"),
    "xz": (b"\xfd7zXZ\0\0", "the file is data compressed by xz"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04", "the file is data compressed by zstd"),
    "tar": (b"trace.json".ljust(257, b"\0") + b"ustar\0".ljust(255, b"\0"), "the file is a tar archive"),
    "image": (b"\x89PNG\r\n\x1a\n\0\0", "the file is an image"),
    "program": (b"\x7fELF\x02\x01\x01\0", "the file is a program"),
    "zeros": (bytes(5000), "the file is zero bytes alone"),
    "short": (gzip.compress(b"a\t1\n")[:12], "its gzip data is cut short"),
}


class BadFilesTest(ServerTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="stepcast-files-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.small = self.write("small.json", json.dumps(small()).encode())

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def run_program(self, *arguments, server=True, given=None, status=0):
        """(standard output, standard error) of a program that must end with `status`; `given` comes through a pipe."""
        environment = {name: value for name, value in os.environ.items() if name != "STEPCAST_SERVER"}
        if server:
            environment["STEPCAST_SERVER"] = self.server.address
        done = subprocess.run(
            [os.environ["STEPCAST"], *arguments], env=environment, input=b"" if given is None else given, capture_output=True, timeout=PATIENCE_SECONDS, check=False
        )
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout} {done.stderr}")
        return done.stdout.decode(), done.stderr.decode()

    # Every command that reads a file, by a function from the file's path.
    def commands(self):
        small_profile = self.small
        return {
            "predict": lambda path: ("predict", path),
            "report": lambda path: ("report", path, "--out", self.folder + "/page.html"),
            "check": lambda path: ("profile", "check", path),
            "upload": lambda path: ("profile", "upload", path),
            "fit": lambda path: ("profile", "fit", path),
            "fit-collectives": lambda path: ("profile", "fit-collectives", path),
            "fit-contention": lambda path: ("profile", "fit-contention", path),
            "import": lambda path: ("profile", "import", path, *IMPORT),
            "import as layers": lambda path: ("profile", "import", path, "--format", "layers", *IMPORT),
            "import of two": lambda path: ("profile", "import", path, path, "--format", "pytorch", *IMPORT),
            "graph": lambda path: ("profile", "import", small_profile, "--format", "run-metadata", "--graph", path, *IMPORT),
            "allocate": lambda path: ("allocate", path, "--workers", "4"),
            "priorities": lambda path: ("predict", small_profile, "--priorities", path),
            "contention": lambda path: ("tune", small_profile, "--contention", path),
            "costs": lambda path: ("optimize", small_profile, "--costs", path),
            "token": lambda path: ("--token-file", path, "profile", "list"),
        }

    def test_every_command_names_what_a_bad_file_is(self):
        files = {name: (self.write(name, content), why) for name, (content, why) in BAD.items()}
        os.symlink("/nowhere/at/all", self.folder + "/link")
        files["link"] = (self.folder + "/link", "it is a link to /nowhere/at/all, which is not there")
        files["directory"] = (self.folder, "it is a directory")
        files["device"] = ("/dev/zero", "it is a device")
        for command, words in self.commands().items():
            for name, (path, why) in files.items():
                with self.subTest(command=command, file=name):
                    status = 2 if command in ("priorities", "contention", "costs", "token") or name in ("link", "directory") else 1
                    if command in ("allocate", "import of two", "import", "graph", "fit-collectives") and name in ("link", "directory"):
                        status = 1 if command == "allocate" else 2
                    out, errors = self.run_program(*words(path), status=status)
                    self.assertEqual(out, "")
                    self.assertIn(why, errors)
                    self.assertIn(path, errors)
                    self.assertNotIn("chunk", errors)
        self.assertEqual(len(self.server.profiles.ListProfiles(store.ListProfilesRequest()).profiles), 0)

    def test_a_mark_at_the_beginning_is_passed_over(self):
        marked = self.write("marked.json", MARK + json.dumps(small()).encode())
        for server in (True, False):
            self.assertEqual(*(self.run_program("predict", path, "--steps", "100", server=server)[0] for path in (self.small, marked)))
            digests = []
            for path in (self.write("layers", LAYERS), self.write("marked.layers", MARK + LAYERS), self.write("marked.gz", gzip.compress(MARK + LAYERS))):
                saved = self.folder + "/saved.json"
                out = self.run_program("profile", "import", path, *IMPORT, "--save", saved, "--output", "json", server=server)[0]
                digests.append(json.loads(out)["profile"]["digest"])
            self.assertEqual(len(set(digests)), 1, digests)
        self.assertIn("profiles/", self.run_program("profile", "upload", marked)[0])
        jobs = self.write("jobs.json", MARK + json.dumps({"jobs": [{"id": "a", "profile": self.small}], "capacity": {"workers": 2}}).encode())
        self.assertIn("total: ", self.run_program("allocate", jobs, "--steps", "100")[0])
        ranks = self.write("ranks", MARK + b"recv/w\t1\n")
        plain = self.write("plain", b"recv/w\t1\n")
        told = [self.run_program("predict", self.small, "--priorities", path, "--steps", "10", status=status) for path, status in self.both(ranks, plain)]
        self.assertEqual(told[0], told[1])

    def both(self, *paths):
        """The paths with the status that the last one has, which must be that of all."""
        environment = os.environ | {"STEPCAST_SERVER": ""}
        words = [os.environ["STEPCAST"], "predict", self.small, "--priorities", paths[-1], "--steps", "10"]
        status = subprocess.run(words, env=environment, capture_output=True, timeout=PATIENCE_SECONDS, check=False).returncode
        return [(path, status) for path in paths]

    def upload(self, content, encoding):
        def messages():
            yield store.UploadProfileRequest(header=store.UploadProfileRequest.Header(encoding=encoding))
            if content:
                yield store.UploadProfileRequest(chunk=content)

        return self.server.profiles.UploadProfile(messages())

    def import_bytes(self, content, graph=b""):
        header = store.ImportProfileRequest.Header(validate_only=True)
        options = header.run_metadata if graph else header.layer_profile
        options.batch_size = 8
        options.platform.bandwidth_bytes_per_second = 1e6
        parts = [store.ImportProfileRequest(header=header)]
        if graph:
            parts.append(store.ImportProfileRequest(graph_chunk=graph))
        if content:
            parts.append(store.ImportProfileRequest(chunk=content))
        return self.server.profiles.ImportProfile(iter(parts))

    # A client of one's own: at the field of the stream, with the same reason.
    def test_the_server_names_them_too(self):
        request = store.UploadProfileRequest
        for name, (content, why) in BAD.items():
            for encoding in (request.JSON, request.TEXT, request.BINARY):
                with self.subTest(name, encoding=encoding), self.assertRaises(grpc.RpcError) as raised:
                    self.upload(content, encoding)
                details = details_of(raised.exception)
                self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "PROFILE_MALFORMED"))
                self.assertIn(why, details.violations["chunk"])
            with self.subTest(name), self.assertRaises(grpc.RpcError) as raised:
                self.import_bytes(content)
            details = details_of(raised.exception)
            self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "IMPORT_INVALID"))
            self.assertIn(why, details.violations["recording"])
        self.assertEqual(self.upload(MARK + json.dumps(small()).encode(), request.JSON).operation_count, len(small()["operations"]))
        self.assertEqual(self.import_bytes(MARK + LAYERS).profile.digest, self.import_bytes(LAYERS).profile.digest)

    def test_a_number_that_json_does_not_have_is_named(self):
        trace = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": NaN, "dur": 2}]}'
        errors = self.run_program("profile", "import", self.write("nan.json", trace), *IMPORT, status=1)[1]
        self.assertIn("NaN, which is not a number of JSON", errors)

    # From a pipe, a FIFO, a descriptor and `-`, with a server and without.
    def test_pipes_are_as_good_as_files(self):
        profile = open(self.small, "rb").read()
        for server in (True, False):
            saved = self.folder + "/saved.json"
            made = self.run_program("profile", "import", self.write("layers", LAYERS), *IMPORT, "--save", saved, server=server)[0]
            for content in (LAYERS, gzip.compress(LAYERS)):
                for path in ("-", "/dev/stdin", "/dev/fd/0"):
                    self.assertEqual(self.run_program("profile", "import", path, *IMPORT, "--save", saved, server=server, given=content)[0], made)
            expected = self.run_program("predict", self.small, "--steps", "100", server=server)
            for path in ("-", "/dev/stdin"):
                self.assertEqual(self.run_program("predict", path, "--steps", "100", server=server, given=profile), expected)
            fifo = self.folder + "/fifo" + str(server)
            os.mkfifo(fifo)
            writer = threading.Thread(target=lambda path=fifo: open(path, "wb").write(LAYERS))
            writer.start()
            self.assertEqual(self.run_program("profile", "import", fifo, *IMPORT, "--save", saved, server=server)[0], made)
            writer.join()
        stored = self.run_program("profile", "import", "-", *IMPORT, "--id", "piped", given=LAYERS)[0]
        self.assertIn("profiles/piped", stored)
        self.assertIn("profiles/up", self.run_program("profile", "upload", "-", "--id", "up", given=profile)[0])
        jobs = json.dumps({"jobs": [{"id": "a", "profile": self.small}], "capacity": {"workers": 2}}).encode()
        self.assertIn("total: ", self.run_program("allocate", "-", "--steps", "100", given=jobs)[0])
        self.assertIn("total: ", self.run_program("allocate", "-", "--steps", "100", given=jobs, server=False)[0])
        self.assertIn("<html", self.run_program("report", "-", "--out", "-", "--steps", "100", "--workers", "1,2", given=profile)[0])
        self.assertIn("valid: ", self.run_program("profile", "check", "-", given=profile)[0])

    def test_standard_input_is_named_once(self):
        for words in (("predict", "-", "--priorities", "-"), ("predict", "-", "--priorities=-"), ("profile", "import", "-", "-", *IMPORT)):
            errors = self.run_program(*words, given=b"x", status=2)[1]
            self.assertIn("standard input (-) is read once, and is named twice", errors)
        for given, why in ((b"", "cannot read standard input: the file is empty"), (BAD["utf16"][0], "cannot read standard input: the file is text in UTF-16")):
            self.assertIn(why, self.run_program("predict", "-", given=given, status=1)[1])
            self.assertIn(why, self.run_program("profile", "import", "-", *IMPORT, given=given, status=1)[1])

    # A descriptor that is closed goes to the next file that is opened, unless it is held.
    def test_a_closed_standard_input_is_said_to_be_closed(self):
        for words in ("profile import - --batch-size 8 --bandwidth 1MB/s", "predict -", "profile upload -"):
            command = ["sh", "-c", f'exec "$STEPCAST" --server {self.server.address} {words} <&-']
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("cannot read standard input: it is closed, or not open for reading", done.stderr)

    def test_a_file_named_as_standard_input_is_found_by_its_folder(self):
        self.write("-", json.dumps(small()).encode())
        environment = os.environ | {"STEPCAST_SERVER": ""}
        words = [os.environ["STEPCAST"], "predict", "./-", "--steps", "10"]
        done = subprocess.run(words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_import_that_reaches_no_server_says_what_needs_none(self):
        words = ("--server", "127.0.0.1:1", "--timeout", "2s", "profile", "import", self.write("layers", LAYERS), *IMPORT)
        self.assertIn("hint: --save FILE keeps the profile on this machine", self.run_program(*words, server=False, status=1)[1])

    # A page of 2 GiB that holds nothing.
    def test_a_large_file_is_refused_before_it_is_read(self):
        large = self.write("large.json", json.dumps(small()).encode().ljust(1 << 20))
        os.truncate(large, 2 << 30)
        for words in (("predict", large), ("profile", "upload", large), ("profile", "check", large)):
            errors = self.run_program(*words, status=1)[1]
            self.assertIn("its 2147483648 bytes are above the limit max_profile_file_bytes = 1073741824", errors)

    def test_nothing_in_a_name_drives_the_terminal(self):
        evil = small()
        evil["operations"][0]["name"] = "recv/\x1b[2J\x1b]0;owned\x07\u202e\u009b31m\nerror: no"
        evil["model"] = "m\x1b[31m\u2066"
        path = self.write("evil\x1b[31m.json", json.dumps(evil).encode())
        self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(evil), profile_id="evil"))
        words = (
            ("predict", path, "--steps", "10", "--plot"),
            ("diagnose", path, "--workers", "2"),
            ("order", path, "--transfers", "5"),
            ("profile", "check", path, "--details"),
            ("profile", "get", "evil"),
            ("profile", "list"),
            ("profile", "get", "evil", "--output", "json"),
            ("trace", path),
            ("predict", "no\x1b[2Jname"),
            ("predict", path, "--bandwidth", "\x1b[2J"),
            ("fly\x1b[2J",),
        )
        environment = os.environ | {"STEPCAST_SERVER": self.server.address}
        for each in words:
            done = subprocess.run([os.environ["STEPCAST"], *each], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
            shown = (done.stdout + done.stderr).decode()
            with self.subTest(each):
                self.assertNotRegex(shown, "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
                self.assertNotRegex(shown, "(?m)^error: no")
                if "json" in each or each[0] == "trace":
                    self.assertIn("owned", json.dumps(json.loads(done.stdout)))
        self.assertIn("m\\x1b[31m", self.run_program("profile", "list")[0])
        self.assertEqual(json.loads(self.run_program("profile", "get", "evil", "--output", "json")[0])["model"], evil["model"])

    def test_every_language_is_shown_as_it_is(self):
        words = small() | {"model": "Größe 中文 العربية עברית 😀"}
        self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(words), profile_id="words"))
        self.assertIn(words["model"], self.run_program("profile", "list")[0])


if __name__ == "__main__":
    unittest.main()
