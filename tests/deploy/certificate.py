"""A certificate of nobody's, to serve over TLS with."""

import os
import subprocess


def make_certificate(folder):
    """Paths of the certificate and its key, which only their owner may read."""
    certificate, key = os.path.join(folder, "tls.crt"), os.path.join(folder, "tls.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=stepcast", "-days", "2"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key
