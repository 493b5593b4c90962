#!/usr/bin/env python3
"""A program that is ended and started again has its system prompt warm: warm_start_test.py PROGRAM SOURCE_DIR

Run on the tiny models, one of them with windows.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

program, source = sys.argv[1:]
TINY = os.path.join(source, "tests", "data", "tiny")
LLAMA = os.path.join(TINY, "llama", "llama.f16.gguf")
GEMMA = os.path.join(TINY, "gemma3_text", "gemma3_text.f32.gguf")
PROMPT = "You are a patient teacher of history. Answer in short sentences, and say so when nobody knows. "
QUESTION = "Who built the first clock?"


def start(model, file, prompt=PROMPT):
    """What a run of the program says: the answer, whether it was warm, tokens before the answer, and found."""
    done = subprocess.run([program, model, file, prompt, QUESTION], check=True, capture_output=True, timeout=120)
    answer, figures = done.stdout.decode(errors="replace").split("\n---\n")
    state, n_prompt, n_found = re.match(r"(\w+): (\d+) tokens before the answer, (\d+) of them", figures).groups()
    return answer, state, int(n_prompt), int(n_found)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check(model, folder):
    file = os.path.join(folder, os.path.basename(model) + ".pins")
    cold = start(model, file)
    assert cold[1] == "cold" and 16 < cold[3] < cold[2], cold
    saved = read(file)
    assert start(model, file) == (cold[0], "warm", *cold[2:])
    assert read(file) == saved

    # Killed at any moment, the next start finds a whole file or none, and gives the same answer.
    for delay in (0.0, 0.01, 0.03, 0.1):
        os.remove(file)
        process = subprocess.Popen([program, model, file, PROMPT, QUESTION], stdout=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not os.path.exists(file) or read(file) == saved, "a part of a file"
        assert start(model, file)[0] == cold[0]
        assert read(file) == saved

    # A damaged file, and one of another prompt, are written anew.
    with open(file, "wb") as damaged:
        damaged.write(saved[:-100])
    assert start(model, file) == cold
    assert start(model, file)[1] == "warm"
    other = start(model, file, PROMPT + "Never joke. ")
    assert other[1] == "cold", other
    assert start(model, file, PROMPT + "Never joke. ") == (other[0], "warm", *other[2:])
    return file


def main():
    with tempfile.TemporaryDirectory() as folder:
        file = check(LLAMA, folder)
        check(GEMMA, folder)
        assert start(GEMMA, file)[1] == "cold", "the file of another model"


main()
