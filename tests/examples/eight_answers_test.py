#!/usr/bin/env python3
"""Eight answers take the prompt's blocks once and their own: eight_answers_test.py PROGRAM SOURCE_DIR

Run on the tiny model, and on SmolLM2 where it is there (INLAY_MODELS, models/). Both have one group of layers.
"""
import os
import re
import subprocess
import sys

program, source = sys.argv[1:]
BLOCK = 16
ANSWERS = 8
TEXT = open(os.path.join(source, "tests", "data", "real", "ppl_public.txt"), encoding="utf-8").read()


def blocks_of(n_tokens):
    return -(-n_tokens // BLOCK)


def check(model, prompt):
    done = subprocess.run([program, model, prompt], check=True, capture_output=True, timeout=600)
    *answers, memory = done.stdout.decode(errors="replace").split("---\n")[1:]
    n_prompt, n_own, n_computed, n_held, n_shared, held, one, eight = map(int, re.findall(r"\d+", memory))
    print(memory, end="")
    assert len(answers) == ANSWERS and len(set(answers)) > 1, answers
    # The prompt went through the model once; so did what was generated, but for the last token of each.
    assert n_computed <= n_prompt + n_own, "the prompt was computed more than once"
    # Held: the prompt once, a copy of its partial block for each answer, and what each adds to it.
    longest = min(n_own, 48)
    assert n_held <= blocks_of(n_prompt) + ANSWERS * (blocks_of(n_prompt % BLOCK + longest)), n_held
    assert n_shared >= n_prompt // BLOCK, n_shared
    assert held * blocks_of(n_prompt) == one * n_held, "bytes are not those of the blocks"
    return held, one, eight


def main():
    tiny = os.path.join(source, "tests", "data", "tiny", "llama", "llama.f16.gguf")
    check(tiny, TEXT[:60])
    small = os.path.join(os.environ.get("INLAY_MODELS") or os.path.join(source, "models"),
                         "smollm2-135m-instruct-q4_1.gguf")
    if not os.path.exists(small):
        return print("the small model is not there: its memory is not measured")
    held, one, eight = check(small, TEXT)
    assert held < 1.5 * one and held < 0.25 * eight, (held, one, eight)


main()
