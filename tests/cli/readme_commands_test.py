#!/usr/bin/env python3
"""The README's lines that use an installed Inlay work as printed: readme_commands_test.py SOURCE_DIR MODEL BUILD_DIR"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

source, model, build = sys.argv[1:]
readme = open(os.path.join(source, "README.md"), encoding="utf-8").read()
blocks = re.findall(r"^```(\w+)\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
lists, = [text for language, text in blocks if language == "cmake"]
commands = [text for language, text in blocks if language == "sh" and "model.gguf" in text]
if len(commands) != 2:
    sys.exit("README.md has other commands than pkg-config's and CMake's")

with tempfile.TemporaryDirectory() as home:
    prefix = os.path.join(home, ".local")
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    project = os.path.join(home, "project")
    os.mkdir(project)
    shutil.copy(os.path.join(source, "examples", "hello.c"), project)
    shutil.copy(model, os.path.join(project, "model.gguf"))
    with open(os.path.join(project, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(lists)
    environment = {**os.environ, "HOME": home}
    for name in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH"):
        environment.pop(name, None)
    for block in commands:
        done = subprocess.run(["sh", "-e", "-c", block], cwd=project, env=environment, capture_output=True, timeout=300)
        if done.returncode != 0 or not done.stdout.strip():
            sys.exit(f"does not work as printed:\n{block}{done.stdout.decode()}{done.stderr.decode()}")
