"""The program over a connection that takes its time to come about: a handshake over a slow link, a server that is busy."""

import os
import socket
import subprocess
import threading
import unittest

from stepcastd import PATIENCE_SECONDS, ServerTest

# More than all attempts of a call and the pauses between them take where the server is gone.
HANDSHAKE_SECONDS = 3


def pass_on(source, sink):
    try:
        while block := source.recv(65536):
            sink.sendall(block)
    except OSError:
        pass  # closed under us
    sink.close()


class SlowNetworkTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.over = threading.Event()
        self.addCleanup(self.over.set)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.over.is_set():
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.delay, args=(client,), daemon=True).start()

    def delay(self, client):
        if self.over.wait(HANDSHAKE_SECONDS):
            return client.close()
        host, port = self.server.address.rsplit(":", 1)
        server = socket.create_connection((host, int(port)))
        threading.Thread(target=pass_on, args=(server, client), daemon=True).start()
        pass_on(client, server)

    def test_a_slow_handshake_is_no_server_that_is_gone(self):
        address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        command = [os.environ["STEPCAST"], "--server", address, "profile", "list", "--output", "json"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
