"""A PostgreSQL server of the test's own, in a temporary directory, reached by a socket there; as root it runs as the user postgres."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import unittest

from stepcastd import eventually


class Postgres:
    """Running once it is made. Raises SkipTest where there can be none."""

    def __init__(self):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not programs:
            raise unittest.SkipTest("there is no /usr/lib/postgresql/*/bin: install the package postgresql")
        self.programs = programs[-1]
        self.folder = tempfile.mkdtemp(prefix="stepcast-postgres-")
        self.process, self.databases = None, 0
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self._spawn("initdb", "--no-sync", "--no-instructions", "--auth=trust", "--username=stepcast", "--pgdata", f"{self.folder}/data").wait()
        self.start()

    def start(self):
        self.process = self._spawn(
            "postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50"
        )
        eventually(lambda: self._psql("template1", "SELECT 1").returncode == 0, "PostgreSQL answers")

    def stop(self):
        """As a crash would."""
        self.process.send_signal(3)
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder)

    def new_database(self):
        """The connection string of an empty one."""
        self.databases += 1
        self.run("template1", f"CREATE DATABASE test{self.databases} TEMPLATE template0")
        return self.conninfo(f"test{self.databases}")

    def conninfo(self, database):
        return f"host={self.folder} user=stepcast dbname={database}"

    def run(self, database, sql):
        done = self._psql(database, sql)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _psql(self, database, sql):
        return subprocess.run(
            [f"{self.programs}/psql", "-XAtq", "-h", self.folder, "-U", "stepcast", "-d", database, "-c", sql], capture_output=True, text=True, check=False
        )

    def _spawn(self, program, *arguments):
        # It ends when the test does, however that ends.
        words = ["setpriv", "--pdeathsig=QUIT"]
        if os.geteuid() == 0:
            words += ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
        with open(f"{self.folder}/log", "ab") as log:
            return subprocess.Popen([*words, f"{self.programs}/{program}", *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
