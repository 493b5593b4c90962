#!/usr/bin/env python3
"""The README's programs are the example programs, which are built, and run here.

usage: readme_test.py SOURCE_DIR MODEL PROGRAM...
"""
import os
import re
import subprocess
import sys

source, model, *programs = sys.argv[1:]
readme = open(os.path.join(source, "README.md"), encoding="utf-8").read()

for language, file in (("c", "hello.c"), ("cpp", "hello.cpp")):
    printed = re.search(rf"^```{language}\n(.*?)^```", readme, re.MULTILINE | re.DOTALL).group(1)
    kept = open(os.path.join(source, "examples", file), encoding="utf-8").read()
    if printed != kept:
        sys.exit(f"README.md prints another program than examples/{file}")

texts = {subprocess.run([program, model, "Hello"], check=True, capture_output=True, timeout=60).stdout
         for program in programs}
if len(texts) != 1 or not texts.pop().strip():
    sys.exit("the programs do not print the same text")

for program in programs:
    failed = subprocess.run([program, "missing.gguf", "Hello"], capture_output=True, timeout=60)
    if failed.returncode != 1 or b"missing.gguf" not in failed.stderr:
        sys.exit(f"{program} does not report a missing file")

for path in re.findall(r"\]\(([^)#]+)\)", readme):
    if not os.path.exists(os.path.join(source, path)):
        sys.exit(f"README.md links to {path}, which is not there")
