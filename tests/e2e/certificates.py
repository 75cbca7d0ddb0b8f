"""Certificates for tests, made by openssl while the test runs: authorities, and what they sign."""

import os
import subprocess

_CONFIG = """
[ca]
default_ca = own
[own]
database = {folder}/index
new_certs_dir = {folder}
default_md = sha256
policy = anything
rand_serial = yes
unique_subject = no
copy_extensions = copy
[anything]
commonName = supplied
"""


def _openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, stdin=subprocess.DEVNULL)


class Pair:
    """Paths of a certificate and its key, and their bytes."""

    def __init__(self, stem):
        self.certificate, self.key = f"{stem}.cert.pem", f"{stem}.key.pem"

    def bytes(self):
        return _read(self.key), _read(self.certificate)


class Authority:
    """Signs certificates below `folder`."""

    def __init__(self, folder, name):
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.config = os.path.join(self.folder, "ca.cnf")
        with open(self.config, "w", encoding="utf-8") as config:
            config.write(_CONFIG.format(folder=self.folder))
        open(os.path.join(self.folder, "index"), "w", encoding="utf-8").close()
        self.pair = Pair(os.path.join(self.folder, "authority"))
        _openssl("req", "-x509", *_new_key(self.pair), "-out", self.pair.certificate, "-days", "2", "-subj", f"/CN={name}")

    def root(self):
        return _read(self.pair.certificate)

    def sign(self, stem, name, *alternatives, begin="20200101000000Z", end="20500101000000Z"):
        """A new pair in files of that stem; `alternatives` are of the form DNS:NAME."""
        pair = Pair(os.path.join(self.folder, stem))
        request = os.path.join(self.folder, f"{stem}.csr")
        extensions = ["-addext", f"subjectAltName={','.join(alternatives)}"] if alternatives else []
        _openssl("req", "-new", *_new_key(pair), "-out", request, "-subj", f"/CN={name}", *extensions)
        signed_by = ["-cert", self.pair.certificate, "-keyfile", self.pair.key]
        _openssl("ca", "-batch", "-notext", "-config", self.config, *signed_by, "-in", request, "-out", pair.certificate, "-startdate", begin, "-enddate", end)
        return pair

    def sign_server(self, stem="server", **times):
        return self.sign(stem, "localhost", "DNS:localhost", "IP:127.0.0.1", **times)


def _new_key(pair):
    # Elliptic, because such a key is made at once; openssl makes the file its owner's.
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", pair.key]


def _read(path):
    with open(path, "rb") as file:
        return file.read()
