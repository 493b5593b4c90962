"""An engine that is a Python package: in an environment of its own under PEERS_DIR, loaded once, asked by lines."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


class PythonPeer:
    """Runs `worker` (a file here) with `arguments` in the environment `name`, which `packages` are installed into."""

    def __init__(self, peers, name, packages, worker, *arguments):
        python = self.installed(os.path.join(peers, name + "-env"), packages)
        self.complaints = tempfile.TemporaryFile()
        self.process = subprocess.Popen([python, "-B", os.path.join(HERE, worker), *map(str, arguments)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints,
                                        text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.about = self.answer()

    @staticmethod
    def installed(folder, packages):
        """The environment's python; made, and the packages installed, where they were not."""
        python = os.path.join(folder, "bin", "python")
        stamp = os.path.join(folder, "installed")
        wanted = " ".join(packages)
        if os.path.exists(stamp) and open(stamp, encoding="utf-8").read() == wanted:
            return python
        print(f"installing {wanted} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                               "--no-cache-dir", *packages], check=False)
        if done.returncode:
            sys.exit(f"could not install {wanted} into {folder}")
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)
        return python

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self):
        """The next line that is an answer; others are what a package prints."""
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self.complaints.seek(0)
        sys.exit(f"{self.process.args[2]} ended:\n{self.complaints.read().decode(errors='replace')[-2000:]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
