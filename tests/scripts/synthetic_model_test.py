#!/usr/bin/env python3
"""A synthetic model opens, is the same for the same seed, and computes finite logits:
synthetic_model_test.py INLAY SOURCE_DIR"""
import json
import os
import subprocess
import sys
import tempfile

inlay, source = sys.argv[1:]
TINY = os.path.join(source, "tests", "data", "tiny", "llama", "llama.f16.gguf")


def write(path, *options):
    subprocess.run([sys.executable, os.path.join(source, "scripts", "write-synthetic-model"), "--shape", "tiny",
                    "--tokenizer-from", TINY, *options, path], check=True)
    with open(path, "rb") as file:
        return file.read()


with tempfile.TemporaryDirectory() as folder:
    model, other = os.path.join(folder, "model.gguf"), os.path.join(folder, "other.gguf")
    first = write(model)
    assert write(other) == first, "the same seed gives another file"
    assert write(other, "--seed", "2") != first, "another seed gives the same file"
    assert os.listdir(folder).count("model.gguf") == 1 and len(os.listdir(folder)) == 2, os.listdir(folder)
    with open(os.path.join(folder, "text"), "w", encoding="utf-8") as text:
        text.write("The quick brown fox jumps over the lazy dog. " * 4)
    for compute in ("auto", "f32"):
        out = subprocess.run([inlay, "perplexity", model, "-f", text.name, "--compute", compute, "--json"], check=True,
                             stdout=subprocess.PIPE).stdout
        loss = json.loads(out)["nll"]  # NaN is no JSON that Inlay writes; logits without a number are an error
        assert 4 < loss < 12, f"{compute}: a loss of {loss} is not that of random weights over 384 tokens"
    wrong = subprocess.run([sys.executable, os.path.join(source, "scripts", "write-synthetic-model"),
                            "--tokenizer-from", __file__, other], capture_output=True)
    assert wrong.returncode == 1 and b"is not a GGUF file" in wrong.stderr, wrong.stderr
