"""A Slurm cluster of this machine alone: munged, slurmctld and slurmd as processes on loopback, always ended.

One node runs; sixty-three more are defined, so that jobs with large ranges can be held. Everything is in a folder of its own, on ports of its own.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from patience import PATIENCE_SECONDS, eventually  # noqa: E402
from ports import free_ports  # noqa: E402

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel")
NODES = 64


def missing():
    """Why there can be no cluster here; "" where there can be one."""
    if os.geteuid() != 0:
        return "needs root"
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    if lacking:
        return f"needs {', '.join(lacking)}: apt install slurmctld slurmd slurm-client munge"
    if not os.path.exists(os.environ.get("STEPCAST_SLURM_PLUGIN", "")):
        return "needs the plugin, which is built where libslurm-dev is installed"
    return ""


class Cluster:
    """`settings`: the text of stepcast.yaml. `options`: lines of slurm.conf."""

    def __init__(self, settings="", options=()):
        self.folder = tempfile.mkdtemp(prefix="stepcast-slurm-")
        os.chmod(self.folder, 0o755)
        self.processes = {}
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH", "STEPCAST_"))}
        self.environment |= {"SLURM_CONF": self.path("slurm.conf"), "STEPCAST_SLURM_CONFIG": self.path("stepcast.yaml")}
        self.write("stepcast.yaml", settings)
        self.write("munge.key", os.urandom(128), 0o600)
        self.write_configuration(options)
        for name in ("state", "spool"):
            os.mkdir(self.path(name), 0o755)
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content, mode=0o644):
        content = content if isinstance(content, bytes) else content.encode()
        with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def write_configuration(self, options):
        controller, node, nobody = free_ports(3)
        host = socket.gethostname().split(".")[0]
        plugins = [os.path.dirname(os.environ["STEPCAST_SLURM_PLUGIN"]), "/usr/lib/x86_64-linux-gnu/slurm-wlm"]
        self.write("slurm.conf", "\n".join((
            "ClusterName=stepcast",
            f"SlurmctldHost={host}(127.0.0.1)",
            "SlurmUser=root",
            "AuthType=auth/munge",
            f"AuthInfo=socket={self.path('munge.socket')}",
            "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
            f"SlurmctldPort={controller}",
            f"SlurmdPort={node}",
            f"SlurmctldPidFile={self.path('slurmctld.pid')}",
            f"SlurmdPidFile={self.path('slurmd.pid')}",
            f"StateSaveLocation={self.path('state')}",
            f"SlurmdSpoolDir={self.path('spool')}",
            f"PluginDir={':'.join(plugins)}",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "MpiDefault=none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU",
            "SchedulerType=sched/builtin",
            "ReturnToService=2",
            # In seconds: for a machine that does much else.
            "MessageTimeout=100",
            "GresTypes=gpu",
            "JobSubmitPlugins=stepcast",
            *options,
            f"NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN",
            f"NodeName=absent[1-{NODES - 1}] NodeAddr=127.0.0.1 Port={nobody} CPUs=8 Gres=gpu:8 State=UNKNOWN",
            "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
            "")))

    def start(self):
        self.run_daemon("munged", "--foreground", "--force", "--key-file", self.path("munge.key"), "--socket", self.path("munge.socket"),
                        "--pid-file", self.path("munged.pid"), "--log-file", self.path("munged.log"), "--seed-file", self.path("munged.seed"))
        self.eventually(lambda: os.path.exists(self.path("munge.socket")), "munged listens")
        self.start_controller()
        self.run_daemon("slurmd", "-D")

    def start_controller(self):
        self.run_daemon("slurmctld", "-D")
        self.eventually(lambda: self.run("scontrol", "ping").returncode == 0, "slurmctld answers")

    def stop_controller(self):
        self.stop("slurmctld")

    def run_daemon(self, program, *arguments):
        with open(self.path(f"{program}.out"), "ab") as output:
            self.processes[program] = subprocess.Popen(
                [program, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=self.environment, cwd=self.folder)

    def run(self, *command, **environment):
        return subprocess.run(command, capture_output=True, text=True, env={**self.environment, **environment}, timeout=PATIENCE_SECONDS, check=False)

    def eventually(self, condition, what, pause=0.05):
        eventually(condition, lambda: f"{what}\n{self.logs()}", pause)

    def logs(self):
        return "".join(f"== {program}\n{self.read(program + '.out')[-4000:]}" for program in self.processes)

    def submit(self, *arguments, hold=True, script="true", **environment):
        """(the job's fields by `scontrol show job`, what sbatch said to the user)."""
        hold_flags = ["--hold"] if hold else []
        done = self.run("sbatch", *hold_flags, "--output", self.path("job-%j.out"), *arguments, "--wrap", script, **environment)
        if done.returncode != 0:
            raise AssertionError(f"refused: {done.stderr}\n{self.logs()}")
        return self.job(re.search(r"job (\d+)", done.stdout)[1]), done.stderr.strip()

    def job(self, number):
        shown = self.run("scontrol", "show", "job", number).stdout
        fields = dict(re.findall(r"^ *(\w+)=(.*)$", shown, re.M))
        return fields | dict(re.findall(r"(\w+)=(\S+)", re.sub(r"^ *\w*Comment=.*$", "", shown, flags=re.M)))

    def stop(self, program):
        process = self.processes.pop(program, None)
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def close(self):
        for program in ("slurmd", "slurmctld", "munged"):
            self.stop(program)
        shutil.rmtree(self.folder)
