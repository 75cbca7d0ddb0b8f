"""What deploy/packages holds against the server and each other. tests/packages_root.sh installs the packages themselves."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from deployment import ROOT, document, text

FOLDER = os.path.join(ROOT, "deploy/packages")
SCRIPTS = ("postinst", "prerm", "postrm")
STEPCASTD = os.environ.get("STEPCASTD", "")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def unit():
    """setting -> value of the unit's last line that sets it."""
    return dict(re.findall(r"^(\w+)=(.*)$", text("deploy/packages/stepcastd.service"), re.M))


def seconds(text):
    """Of a duration in whole seconds, `5s`."""
    return float(re.fullmatch(r"(\d+)s", text)[1])


def settings():
    """flag -> its default, "" for none."""
    return dict(re.findall(r"^  (--[a-z-]+)(?:[^=\n]*=(\S*)|[^\n]*)", run(STEPCASTD, "--help", check=True).stdout, re.M))


class UnitTest(unittest.TestCase):
    def test_the_command_is_one_the_server_has(self):
        program, *arguments = unit()["ExecStart"].split()
        self.assertEqual(program, "/usr/bin/stepcastd")
        self.assertEqual(arguments, ["--config", "/etc/stepcast/stepcastd.yaml"])
        self.assertIn("--config", settings())

    def test_the_server_starts_with_its_file(self):
        done = run(STEPCASTD, "--config", os.path.join(FOLDER, "stepcastd.yaml"), "--check-config", env={"PATH": os.environ["PATH"]})
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)

    def test_what_the_file_leaves_out_is_a_setting_too(self):
        flags = settings()
        proposed = re.findall(r"^# ([a-z-]+): \S+$", text("deploy/packages/stepcastd.yaml"), re.M)
        self.assertEqual(proposed, ["tls-cert", "tls-key", "tokens"])
        for name in (*proposed, *document("deploy/packages/stepcastd.yaml")):
            self.assertIn("--" + name, flags)

    def test_it_listens_on_loopback_as_the_server_does_by_itself(self):
        flags, file = settings(), document("deploy/packages/stepcastd.yaml")
        for name in ("listen", "http-listen"):
            self.assertEqual(file[name], flags["--" + name])
            self.assertTrue(file[name].startswith("127.0.0.1:"))

    def test_user_and_directory_are_the_same_everywhere(self):
        kind, user, number, _, home = re.fullmatch(r'(\S+) (\S+) (\S+) "(.*)" (\S+)\n', text("deploy/packages/stepcast-server.sysusers")).groups()
        self.assertEqual((kind, number), ("u", "-"))
        self.assertEqual((unit()["User"], unit()["Group"]), (user, user))
        self.assertIn(f"install -d -o {user} -g {user} -m {unit()['StateDirectoryMode']} {home}\n", text("deploy/packages/server/postinst"))
        directory = document("deploy/packages/stepcastd.yaml")["data-dir"]
        self.assertEqual({directory, os.path.join("/var/lib", unit()["StateDirectory"]), unit()["WorkingDirectory"]}, {home})

    def test_pages_give_commands_that_fit_the_packaged_server(self):
        """As its user, or root's files would keep it from its store; with its settings, or a check would be of the defaults."""
        user, file = unit()["User"], unit()["ExecStart"].split()[-1]
        restore, upgrade = (text(f"server/docs/{page}.md").replace("\\\n> ", "") for page in ("backup-restore", "upgrade"))
        packaged = [line for line in re.findall(r"^\$ (.*)$", restore, re.M) if f"--data-dir {unit()['WorkingDirectory']}" in line]
        self.assertEqual(["--backup-to" in line for line in packaged], [True, False])
        for line in packaged:
            self.assertTrue(line.startswith(f"runuser -u {user} -- stepcastd "), line)
        self.assertEqual(re.findall(r"stepcastd (.*--check-config.*)$", upgrade, re.M), [f"--config {file} --check-config"])

    def test_nobody_kills_a_server_that_drains(self):
        flags = settings()
        self.assertGreater(float(unit()["TimeoutStopSec"]), seconds(flags["--drain-delay"]) + seconds(flags["--drain-timeout"]) + 2)

    def test_a_wrong_configuration_is_not_tried_again(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("queue-max: many\n")
            file.flush()
            done = run(STEPCASTD, "--config", file.name)
        self.assertEqual(str(done.returncode), unit()["RestartPreventExitStatus"], done.stderr)
        self.assertEqual(unit()["Restart"], "on-failure")

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_systemd_understands_it_and_finds_little_exposed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stepcastd.service")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text("deploy/packages/stepcastd.service").replace("/usr/bin/stepcastd", STEPCASTD))
            verified = run("systemd-analyze", "verify", "--man=no", path)
            self.assertEqual((verified.returncode, verified.stdout + verified.stderr), (0, ""))
            # Of ten, times ten.
            exposed = run("systemd-analyze", "security", "--offline=true", "--threshold=20", path)
            self.assertEqual(exposed.returncode, 0, exposed.stdout + exposed.stderr)


class MaintainerScriptTest(unittest.TestCase):
    def test_a_shell_reads_them(self):
        for name in SCRIPTS:
            path = os.path.join(FOLDER, "server", name)
            self.assertTrue(os.access(path, os.X_OK), name)
            checked = run("sh", "-n", path)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), name)

    @unittest.skipUnless(shutil.which("shellcheck"), "needs shellcheck")
    def test_shellcheck_has_nothing_to_say(self):
        checked = run("shellcheck", *(os.path.join(FOLDER, "server", name) for name in SCRIPTS))
        self.assertEqual((checked.returncode, checked.stdout), (0, ""))

    def test_the_file_of_settings_is_a_conffile(self):
        self.assertEqual(text("deploy/packages/server/conffiles").split(), [unit()["ExecStart"].split()[-1]])

    def test_the_plugins_settings_are_a_conffile_and_in_the_packages_list(self):
        self.assertEqual(text("deploy/slurm/conffiles"), "/etc/slurm/stepcast.yaml\n")
        self.assertIn("stepcast_package_install(slurm /etc/slurm ${PROJECT_SOURCE_DIR}/deploy/slurm/stepcast.yaml)", text("deploy/packages/packages.cmake"))

    def calls(self, script, *arguments):
        """What a maintainer script runs, none of which does anything here."""
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            for program in ("deb-systemd-helper", "deb-systemd-invoke", "systemctl", "systemd-sysusers", "install", "rm", "rmdir"):
                path = os.path.join(folder, program)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f'#!/bin/sh\necho {program} "$@" >>{log}\n')
                os.chmod(path, 0o755)
            open(log, "w", encoding="utf-8").close()
            done = run("/bin/sh", os.path.join(FOLDER, "server", script), *arguments, env={"PATH": folder})
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            with open(log, encoding="utf-8") as file:
                # systemd is told only where it runs.
                return [line for line in file.read().splitlines() if not line.startswith("systemctl ")]

    def test_nothing_is_done_for_what_is_none_of_theirs(self):
        for arguments in (("upgrade", "0.2.0"), ("failed-upgrade", "0.2.0"), ("disappear", "other", "0.2.0"), ("dance",)):
            for script in ("prerm", "postrm"):
                self.assertEqual(self.calls(script, *arguments), [], (script, arguments))
        self.assertEqual(self.calls("postinst", "dance"), [])

    def test_only_an_empty_directory_is_ever_deleted(self):
        self.assertIn("systemd-sysusers stepcast-server.conf", self.calls("postinst", "configure", ""))
        self.assertEqual(self.calls("postrm", "remove"), ["deb-systemd-helper mask stepcastd.service"])
        self.assertEqual(self.calls("postrm", "purge")[2:], ["rmdir /etc/stepcast", "rmdir /var/lib/stepcast"])


class VersionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = folder.name

    def git(self, *arguments, time="2026-11-22T04:51:52+01:00"):
        environment = {**os.environ, "GIT_COMMITTER_DATE": time, "GIT_AUTHOR_DATE": time, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@stepcast.example")
        done = run("git", "-C", self.tree, *identity, *arguments, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def commit(self, time):
        self.git("commit", "--quiet", "--allow-empty", "--message", time, time=time)

    def version(self, project="0.1.0"):
        with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
            script.write(f"include({FOLDER}/version.cmake)\nstepcast_package_version({self.tree} {project})\n")
            script.write("message(\"${package_version}|${package_epoch}|${package_date}\")\n")
            script.flush()
            done = run("cmake", "-P", script.name, cwd=self.tree, env={**os.environ, "TZ": "Asia/Kolkata", "GIT_CEILING_DIRECTORIES": self.tree})
        self.assertEqual(done.returncode, 0, done.stderr)
        version, self.epoch, self.date = done.stderr.strip().split("|")
        return version

    def test_each_is_an_upgrade_of_those_before(self):
        self.git("init", "--quiet")
        self.commit("2026-11-22T04:51:52+01:00")
        versions = [self.version()]
        self.assertRegex(versions[0], r"^0\.1\.0~git20261122035152\.[0-9a-f]{8}$")
        self.assertEqual((self.epoch, self.date), ("1795319512", "Sun, 22 Nov 2026 03:51:52 +0000"))
        # Earlier by the clock on the wall, later in time.
        self.commit("2026-11-22T03:51:53+00:00")
        versions.append(self.version())
        with open(os.path.join(self.tree, "file"), "w", encoding="utf-8") as file:
            file.write("not committed\n")
        self.git("add", "file")
        versions.append(self.version())
        self.assertEqual(versions[2], versions[1] + ".dirty")
        self.commit("2026-11-23T00:00:00+00:00")
        self.git("tag", "v0.1.0")
        versions.append(self.version())
        self.assertEqual(versions[3], "0.1.0")
        self.commit("2026-11-24T00:00:00+00:00")
        versions.append(self.version())
        self.assertRegex(versions[4], r"^0\.1\.0\+git20261124000000\.")
        versions += [self.version("0.2.0"), "0.2.0"]
        self.assertRegex(versions[5], r"^0\.2\.0~git20261124000000\.")
        for older, newer in zip(versions, versions[1:]):
            self.assertEqual(run("dpkg", "--compare-versions", older, "lt", newer).returncode, 0, (older, newer))

    def test_without_a_checkout_it_is_the_projects(self):
        self.assertEqual(self.version(), "0.1.0")


if __name__ == "__main__":
    unittest.main()
