#!/usr/bin/env python3
"""The command line as its users see it: output, files, exit statuses. Only Python's standard library is needed.

usage: cli_test.py INLAY SOURCE_DIR [unittest arguments]
The tests of the small model and of the reference data skip themselves when these are not there.
"""
import array
import base64
import fcntl
import json
import math
import os
import pty
import re
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

INLAY, SOURCE = sys.argv[1:3]
DATA = os.path.join(SOURCE, "tests", "data")
TINY = os.path.join(DATA, "tiny", "llama", "llama.f16.gguf")


def read_bytes(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


GOLDEN = json.loads(read_bytes(DATA, "tiny", "llama", "golden.json"))
REFERENCE = os.environ.get("INLAY_REFDATA") or os.path.join(SOURCE, "..", "shared", "refdata")
MODELS = os.environ.get("INLAY_MODELS") or os.path.join(SOURCE, "models")
SMALL = os.path.join(MODELS, "smollm2-135m-instruct-q4_1.gguf")
SMALL_GOLDEN = os.path.join(REFERENCE, "real", "smollm2-135m-instruct-q4_1.json")
EXACT = ["--compute", "f32", "--kv", "f32"]


def inlay(*arguments, text=None, status=0):
    """Runs a command and returns its stdout as bytes."""
    done = subprocess.run([INLAY, *map(str, arguments)], input=text, capture_output=True, timeout=900)
    if done.returncode != status:
        raise AssertionError(f"{arguments}: status {done.returncode}, expected {status}\n{done.stderr.decode()}")
    return done.stdout


def inlay_json(*arguments, **keywords):
    return json.loads(inlay(*arguments, "--json", **keywords))


def read_npy(path):
    """Shape and values of a little-endian f32 file of version 1.0 in C order."""
    with open(path, "rb") as file:
        magic, major, minor, n_header = struct.unpack("<6sBBH", file.read(10))
        header = file.read(n_header).decode("latin-1")
        values = array.array("f", file.read())
    assert (magic, major, minor) == (b"\x93NUMPY", 1, 0), (magic, major, minor)
    assert (10 + n_header) % 64 == 0 and header.endswith("\n")
    assert "'descr': '<f4'" in header and "'fortran_order': False" in header
    shape = tuple(int(n) for n in header.split("'shape': (")[1].split(")")[0].split(",") if n.strip())
    assert len(values) == math.prod(shape)
    return shape, values


def ids(tokens):
    return ",".join(map(str, tokens))


def big_model(path):
    """Writes the tiny model with feed-forward layers so wide that loading its 226 MB, nearly all a hole, takes time."""
    n_wide = 98304
    model = bytearray(read_bytes(TINY))
    struct.pack_into("<I", model, model.index(b"llama.feed_forward_length") + 29, n_wide)
    n_data = 0
    for tensor in re.finditer(rb"(blk\.\d+\.\w+|token_embd|output_norm|output)\.weight", bytes(model)):
        n_dims, = struct.unpack_from("<I", model, tensor.end())
        at_dims, at_type = tensor.end() + 4, tensor.end() + 4 + 8 * n_dims
        dims = [n_wide if n == 256 else n for n in struct.unpack_from(f"<{n_dims}Q", model, at_dims)]
        struct.pack_into(f"<{n_dims}Q", model, at_dims, *dims)
        is_half, = struct.unpack_from("<I", model, at_type)
        struct.pack_into("<Q", model, at_type + 4, n_data)
        n_data += math.prod(dims) * (2 if is_half else 4)
    with open(path, "wb") as file:
        file.write(model)
        file.truncate(len(model) + n_data)
    return path


def catches_interrupt(process):
    """Whether a handler of the process waits for SIGINT."""
    status = read_bytes("/proc", str(process.pid), "status").decode()
    return int(re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE).group(1), 16) >> (signal.SIGINT - 1) & 1 == 1


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited too long")
        time.sleep(0.001)


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path


class Run(WithFolder):
    def test_greedy_tokens_are_the_reference_ones(self):
        reply = inlay_json("run", TINY, "--ids", ids(GOLDEN["prompt_ids"]), "-n", 32, "--ignore-eos", *EXACT)
        self.assertEqual(set(reply), {"tokens", "text", "prompt_tokens", "reused_tokens", "ttft_ms", "decode_tok_s",
                                      "finish"})
        self.assertEqual(reply["tokens"], GOLDEN["greedy_ids"])
        self.assertEqual((reply["prompt_tokens"], reply["reused_tokens"], reply["finish"]), (48, 0, "length"))
        self.assertGreater(reply["ttft_ms"], 0)
        self.assertGreater(reply["decode_tok_s"], 0)

    def test_text_is_what_the_tokens_say(self):
        arguments = ["run", TINY, "-p", "Once upon a time", "-n", 24, "--ignore-eos", "--seed", 5, "--temp", 1,
                     "--top-k", 40, "--top-p", 0.95, "--min-p", 0.01]
        reply = inlay_json(*arguments)
        self.assertEqual(len(reply["tokens"]), 24)
        plain = inlay(*arguments).decode()
        self.assertEqual(plain.rstrip("\n"), reply["text"].rstrip("\n"))
        path = self.write("prompt.txt", b"Once upon a time")
        from_file = inlay_json("run", TINY, "-f", path, *arguments[4:])
        self.assertEqual(from_file["tokens"], reply["tokens"])
        from_stdin = inlay_json("run", TINY, "-f", "-", *arguments[4:], text=b"Once upon a time")
        self.assertEqual(from_stdin["tokens"], reply["tokens"])

    def test_threads_and_instructions_change_nothing(self):
        arguments = ["run", TINY, "--ids", "@" + self.write("ids.json", b"[1, 2, 3,\n 4, 5]"), "-n", 16, "--ignore-eos"]
        expected = inlay_json(*arguments)["tokens"]
        for more in (["--threads", 1], ["--threads", 3], ["--instructions", "portable"]):
            self.assertEqual(inlay_json(*arguments, *more)["tokens"], expected)

    def test_the_context_ends_the_text(self):
        reply = inlay_json("run", TINY, "--ids", "1 2 3 4", "-n", 0, "--ctx", 20, "--ignore-eos")
        self.assertEqual(reply["finish"], "length")
        self.assertEqual(len(reply["tokens"]), 20 - 4)
        for n_new in (0, 2**31 - 1):
            reply = inlay_json("run", TINY, "--ids", "1 2 3 4", "-n", n_new, "--ctx", 5, "--ignore-eos")
            self.assertEqual((reply["finish"], len(reply["tokens"])), ("length", 1))

    def test_a_prompt_without_room_after_it_is_told_before_it_is_computed(self):
        for n_context in (3, 4):
            error = inlay_json("run", TINY, "--ids", "1 2 3 4", "--ctx", n_context, status=1)["error"]
            self.assertEqual(error["name"], "INLAY_E_CONTEXT_FULL")
            self.assertIn(f"context of {n_context} tokens", error["message"])
            self.assertIn("the 4 tokens of the prompt", error["message"])

    def test_one_token_has_no_rate(self):
        self.assertIsNone(inlay_json("run", TINY, "--ids", 1, "-n", 1, "--ignore-eos")["decode_tok_s"])

    def test_a_saved_session_goes_on_in_another_process(self):
        path = os.path.join(self.folder, "session")
        for model in (TINY, os.path.join(DATA, "tiny", "gemma3_text", "gemma3_text.f32.gguf")):
            for kv in ("f16", "f32"):
                common = ["--ignore-eos", "--kv", kv, "--seed", 7, "--temp", 0.8]
                prompt = ["--ids", ids(range(1, 50))]
                whole = inlay_json("run", model, *prompt, "-n", 25, *common)
                first = inlay_json("run", model, *prompt, "-n", 10, "--save", path, *common)
                second = inlay_json("run", model, "--load", path, "-n", 10, "--save", path, *common)
                self.assertEqual((second["loaded_tokens"], second["same_numerics"]), (59, True))
                third = inlay_json("run", model, "--load", "-", "-n", 5, *common, text=read_bytes(path))
                self.assertEqual(first["tokens"] + second["tokens"] + third["tokens"], whole["tokens"])
                self.assertEqual((first["prompt_tokens"], second["prompt_tokens"]), (49, 0))
        self.assertEqual(os.listdir(self.folder), ["session"])
        more = inlay_json("run", model, "--load", path, "--ids", "3 4", "-n", 5, *common)
        self.assertEqual(more["prompt_tokens"], 2)

    def test_a_session_that_can_not_be_loaded_or_saved(self):
        path = os.path.join(self.folder, "session")
        inlay_json("run", TINY, "--ids", "1 2 3", "-n", 2, "--save", path)
        saved = read_bytes(path)
        cut = self.write("cut", saved[:-1])
        longer = self.write("longer", saved + b"x")
        for arguments, name in ((["--load", cut], "INLAY_E_FORMAT"), (["--load", path, "--kv", "f32"], "INLAY_E_MISMATCH"),
                                (["--load", os.path.join(self.folder, "none")], "INLAY_E_IO"),
                                (["--ids", "1", "--save", os.path.join(self.folder, "no", "such")], "INLAY_E_IO"),
                                (["--load", cut, "--save", path], "INLAY_E_FORMAT"),
                                (["--load", longer, "--save", path], "INLAY_E_FORMAT")):
            self.assertEqual(inlay_json("run", TINY, *arguments, status=1)["error"]["name"], name)
        self.assertEqual(read_bytes(path), saved)
        self.assertEqual(sorted(os.listdir(self.folder)), ["cut", "longer", "session"])
        os.chmod(path, 0o600)
        link = os.path.join(self.folder, "link")
        os.symlink("target", link)
        for place in (path, link):
            inlay_json("run", TINY, "--ids", "1 2 3", "-n", 2, "--save", place)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertTrue(os.path.islink(link) and read_bytes(self.folder, "target") == read_bytes(path))
        nowhere = os.path.join(self.folder, "no", "such")  # said before any text
        self.assertEqual(inlay("run", TINY, "--ids", "1 2", "-n", 5, "--save", nowhere, status=1), b"")
        for arguments in ([], ["--ids", "1", "--save", "-"], ["--ids", "1", "--save", TINY]):
            inlay_json("run", TINY, *arguments, status=2)
        for prompt in (["-f", "-"], ["--ids", "@-"]):
            error = inlay_json("run", TINY, "--load", "-", *prompt, text=saved, status=2)["error"]
            self.assertIn("stdin is taken by the prompt", error["message"])

    def test_interrupt_prints_what_is_there(self):
        arguments = ["run", TINY, "--ids", "1,2,3", "-n", 10000000, "--ctx", 10000000, "--ignore-eos", "--json"]
        process = subprocess.Popen([INLAY, *map(str, arguments)], stdout=subprocess.PIPE)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(output)["finish"], "cancelled")


class Terminal(WithFolder):
    """What needs a model that takes time to load, a terminal, or a signal at a certain moment."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.big = big_model(os.path.join(folder.name, "big.gguf"))

    def on_terminal(self, *arguments):
        """What a command writes to stderr when that is a terminal."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([INLAY, *arguments], stdout=subprocess.DEVNULL, stderr=theirs) as process:
            os.close(theirs)
            written = b""
            while True:
                try:
                    written += os.read(ours, 4096)
                except OSError:  # the other side is closed
                    break
        os.close(ours)
        self.assertEqual(process.returncode, 0)
        return written

    def test_the_progress_bar(self):
        command = ["run", self.big, "--ids", "1", "-n", "1"]
        written = self.on_terminal(*command)
        self.assertTrue(written.startswith(b"\rloading ["), written)
        self.assertIn(b"100 % of 0.2 GB", written)
        self.assertTrue(written.endswith(b"\r\x1b[K"), written)
        self.assertNotIn(b"\n", written)
        self.assertEqual(self.on_terminal(*command, "--json"), b"")
        self.assertEqual(self.on_terminal("run", TINY, "--ids", "1", "-n", "1"), b"")
        self.assertEqual(subprocess.run([INLAY, *command], capture_output=True, check=True).stderr, b"")

    def test_interrupt_while_loading(self):
        for arguments in (["run", self.big, "-p", "x"], ["bench", self.big],
                          ["logits", self.big, "-p", "x", "--out", os.path.join(self.folder, "logits.npy")]):
            # Of low priority, so that on a busy machine too the signal comes before the end of loading.
            process = subprocess.Popen([INLAY, *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       preexec_fn=lambda: os.nice(19))
            wait_until(lambda: catches_interrupt(process))
            process.send_signal(signal.SIGINT)
            output, sentence = process.communicate(timeout=60)
            self.assertEqual((process.returncode, sentence), (130, b"inlay: interrupted: the model was not loaded\n"))
            self.assertEqual(json.loads(output)["error"]["name"], "INLAY_E_CANCELLED")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_second_interrupt_ends_the_program(self):
        unread, output = os.pipe()
        self.addCleanup(os.close, unread)
        fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, 4096)

        def n_written():
            return struct.unpack("i", fcntl.ioctl(unread, termios.FIONREAD, b"\0\0\0\0"))[0]

        def full():  # so that the program hangs in writing
            before = n_written()
            time.sleep(0.3)
            return 0 < before == n_written()

        arguments = ["run", TINY, "--ids", "1,2,3", "-n", "1000000", "--ctx", "1000000", "--ignore-eos"]
        process = subprocess.Popen([INLAY, *arguments], stdout=output)
        os.close(output)
        wait_until(full)
        self.assertTrue(catches_interrupt(process))
        process.send_signal(signal.SIGINT)
        wait_until(lambda: not catches_interrupt(process))
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), -signal.SIGINT)


class Logits(WithFolder):
    def test_all_rows_equal_the_reference(self):
        out = os.path.join(self.folder, "logits.npy")
        result = inlay_json("logits", TINY, "--ids", ids(GOLDEN["prompt_ids"]), "--out", out, *EXACT)
        self.assertEqual((result["rows"], result["vocabulary"], result["reused_tokens"]), (48, 384, 0))
        shape, values = read_npy(out)
        expected_shape, expected = read_npy(os.path.join(DATA, "tiny", "llama", "logits.npy"))
        self.assertEqual(shape, expected_shape)
        self.assertLess(max(abs(a - b) for a, b in zip(values, expected)), 2e-4)

    def test_long_prompt(self):
        out = os.path.join(self.folder, "logits.npy")
        inlay("logits", TINY, "--ids", ids(GOLDEN["long_prompt_ids"]), "--out", out, *EXACT)
        (_, n), values = read_npy(out)
        _, expected = read_npy(os.path.join(DATA, "tiny", "llama", "logits_long.npy"))
        rows = [value for p in GOLDEN["long_positions"] for value in values[p * n:(p + 1) * n]]
        self.assertLess(max(abs(a - b) for a, b in zip(rows, expected)), 1e-3)

    def test_chunks_and_first_row(self):
        out = os.path.join(self.folder, "logits.npy")
        prompt = ["logits", TINY, "--ids", ids(GOLDEN["prompt_ids"]), "--out", out]
        inlay(*prompt)
        (_, n), whole = read_npy(out)
        for chunk in (1, 7, 16, 100):
            inlay(*prompt, "--chunk", chunk)
            self.assertEqual(read_npy(out)[1].tobytes(), whole.tobytes())
        for first in (1, 16, 47):
            inlay(*prompt, "--chunk", 16, "--from", first)
            shape, values = read_npy(out)
            self.assertEqual(shape, (48 - first, n))
            self.assertEqual(values.tobytes(), whole[first * n:].tobytes())

    def test_no_file_is_left_after_an_error(self):
        out = os.path.join(self.folder, "logits.npy")
        error = inlay_json("logits", TINY, "--ids", "1,2,999999", "--out", out, status=1)["error"]
        self.assertEqual(error["name"], "INLAY_E_INVALID_ARGUMENT")
        self.assertEqual(os.listdir(self.folder), [])
        self.write("logits.npy", b"of before")
        inlay("logits", TINY, "--ids", "1,2,999999", "--out", out, status=1)
        self.assertEqual((os.listdir(self.folder), read_bytes(out)), (["logits.npy"], b"of before"))
        missing = os.path.join(self.folder, "no", "logits.npy")
        error = inlay_json("logits", TINY, "--ids", "1", "--out", missing, status=1)["error"]
        self.assertEqual(error["name"], "INLAY_E_IO")

    def test_the_model_is_never_the_output(self):
        model, link = self.write("model.gguf", read_bytes(TINY)), os.path.join(self.folder, "link.gguf")
        os.symlink(model, link)
        for out in (model, link):
            inlay("logits", model, "--ids", "1", "--out", out, status=2)
        self.assertEqual(read_bytes(model), read_bytes(TINY))

    def test_a_pipe_is_written_as_it_comes(self):
        whole = os.path.join(self.folder, "logits.npy")
        inlay("logits", TINY, "--ids", "1,2", "--out", whole)
        for out in ("/dev/stdout", "-"):
            self.assertEqual(inlay("logits", TINY, "--ids", "1,2", "--out", out), read_bytes(whole))


class Text(WithFolder):
    def test_golden_strings(self):
        golden = json.loads(read_bytes(DATA, "tokenizers", "tiny-bpe384.json"))
        strings = json.loads(read_bytes(DATA, "tokenizers", "strings.json"))
        expected = {case["name"]: case for case in golden["cases"]}
        for string in [s for s in strings if s["utf8_valid"] and s["name"] in expected][::5]:
            case, text = expected[string["name"]], base64.b64decode(string["b64"])
            self.assertEqual(json.loads(inlay("tokenize", TINY, "--no-bos", text=text)), case["ids"], case["name"])
            special = json.loads(inlay("tokenize", TINY, "--no-bos", "--special", text=text))
            self.assertEqual(special, case.get("ids_parse_special", case["ids"]), case["name"])

    def test_there_and_back(self):
        text = "Ünïcode 漢字 🎉\n\ttabs  and spaces "
        path = self.write("text.txt", text.encode())
        tokens = json.loads(inlay("tokenize", TINY, "-f", path, "--no-bos"))
        self.assertEqual(tokens, inlay_json("tokenize", TINY, "-p", text, "--no-bos"))
        self.assertEqual(inlay("detokenize", TINY, "--ids", ids(tokens)), text.encode())
        self.assertEqual(inlay_json("detokenize", TINY, "--ids", ids(tokens))["text"], text)
        self.assertEqual(json.loads(inlay("tokenize", TINY, text=b"")), json.loads(inlay("tokenize", TINY, "-p", "")))

    def test_bytes_are_printed_as_they_are(self):
        everything = bytes(range(1, 128)) + "é".encode()
        tokens = json.loads(inlay("tokenize", TINY, "--no-bos", text=everything))
        self.assertEqual(inlay("detokenize", TINY, "--ids", ids(tokens)), everything)

    def test_vocabulary_files(self):
        path = os.path.join(REFERENCE, "vocab", "ggml-vocab-gpt-2.gguf")
        if not os.path.exists(path):
            self.skipTest("no reference data")
        tokens = json.loads(inlay("tokenize", path, "-p", "Hello world", "--no-bos"))
        self.assertEqual(tokens, [15496, 995])
        info = inlay_json("info", path)
        self.assertEqual(info["metadata"]["general.architecture"], "gpt2")
        self.assertIsNone(info["estimate"])


class Measure(WithFolder):
    def test_info(self):
        info = inlay_json("info", TINY)
        self.assertEqual(info["metadata"]["general.architecture"], "llama")
        self.assertEqual(info["vocabulary"], 384)
        self.assertEqual(info["file_bytes"], os.path.getsize(TINY))
        estimate = info["estimate"]
        self.assertEqual(set(estimate), {"context_tokens", "kv", "weight_bytes", "kv_bytes_per_token", "kv_bytes",
                                         "scratch_bytes", "tokenizer_bytes", "total_bytes"})
        wide = inlay_json("info", TINY, "--kv", "f32", "--ctx", 64)["estimate"]
        self.assertEqual(wide["kv_bytes_per_token"], 2 * estimate["kv_bytes_per_token"])
        self.assertEqual(wide["context_tokens"], 64)
        self.assertIn(b"general.architecture", inlay("info", TINY))

    def test_info_of_what_cannot_be_estimated(self):
        whole = read_bytes(TINY)
        alien = whole.replace(b"llama", b"alien", 1)
        vocabulary = whole[:8] + bytes(8) + whole[16:whole.index(b"output.weight") - 8]
        for content in (alien, vocabulary):
            info = inlay_json("info", self.write("model.gguf", content))
            self.assertEqual(info["vocabulary"], 384)
            self.assertIsNone(info["estimate"])
            self.assertTrue(info["estimate_error"])
        for damaged in (whole[:-1000], whole.replace(b"llama.embedding_length", b"llama.embedding_lengtX")):
            error = inlay_json("info", self.write("damaged.gguf", damaged), status=1)["error"]
            self.assertEqual(error["name"], "INLAY_E_FORMAT")

    def test_bench(self):
        result = inlay_json("bench", TINY, "--prompt", 32, "--gen", 8, "--depth", 16, "--reps", 3, "--threads", 1)
        for name in ("prefill_tok_s", "decode_tok_s"):
            self.assertEqual(len(result[name + "_runs"]), 3)
            self.assertTrue(0 < result[name + "_min"] <= result[name] <= result[name + "_max"])
        self.assertEqual((result["reused_tokens"], result["recomputed_tokens"]), (0, 0))
        self.assertEqual((result["threads"], result["compute"]), (1, "auto"))
        self.assertIn(result["instructions"], ("portable", "avx2", "avx512", "neon"))
        self.assertGreater(result["load_ms"], 0)
        self.assertIsNone(result["reload_ms"])
        self.assertEqual(len(inlay_json("bench", TINY, "--gen", 4, "--reloads", 2)["reload_ms_runs"]), 2)
        if os.path.exists("/proc/self/status"):
            self.assertGreater(result["loaded_resident_bytes"], result["weight_bytes"])
        mapped = inlay_json("bench", TINY, "--gen", 4, "--reps", 1, "--threads", 1, "--map")
        self.assertLess(mapped["weight_bytes"], result["weight_bytes"])
        self.assertIsNone(inlay_json("bench", TINY, "--prompt", 0, "--gen", 4, "--reps", 1)["prefill_tok_s"])

    def test_bench_of_many_sessions(self):
        arguments = ["bench", TINY, "--parallel", 6, "--prompt", 80, "--gen", 5, "--reps", 2]
        apart = inlay_json(*arguments)
        self.assertEqual((apart["parallel"], apart["reused_tokens"], apart["computed_tokens"]), (6, 0, 6 * (80 + 4)))
        self.assertGreater(apart["mean_batch"], 5.5)
        self.assertGreater(apart["decode_tok_s"], 0)
        shared = inlay_json(*arguments, "--shared-prefix", 64)
        self.assertEqual((shared["reused_tokens"], shared["computed_tokens"]), (5 * 64, 64 + 6 * (16 + 4)))
        self.assertLess(shared["generated_tok_s"], shared["decode_tok_s"])
        warm = inlay_json(*arguments, "--shared-prefix", 64, "--warm-prefix")
        self.assertEqual((warm["reused_tokens"], warm["computed_tokens"]), (6 * 64, 6 * (16 + 4)))
        for wrong in (["--shared-prefix", 81], ["--depth", 1], ["--gen", 1], ["--warm-prefix"]):
            inlay(*arguments, *wrong, status=2)

    def test_perplexity_of_logits(self):
        text = self.write("text.txt", b"The quick brown fox jumps over the lazy dog. " * 8)
        tokens = json.loads(inlay("tokenize", TINY, "-f", text))
        out = os.path.join(self.folder, "logits.npy")
        windows = {(): [(0, len(tokens), 1)],
                   ("--ctx", 32): [(b, b + 32, b + 17) for b in range(0, len(tokens) - 31, 32)],
                   ("--ctx", 32, "--stride", 20): self.sliding(len(tokens), 32, 20)}
        for arguments, expected in windows.items():
            losses = []
            for begin, end, score_from in expected:
                inlay("logits", TINY, "--ids", ids(tokens[begin:end]), "--out", out)
                (_, n), values = read_npy(out)
                losses += [self.loss(values[(i - begin - 1) * n:(i - begin) * n], tokens[i])
                           for i in range(score_from, end)]
            result = inlay_json("perplexity", TINY, "-f", text, *arguments)
            self.assertEqual(result["tokens"], len(losses))
            self.assertAlmostEqual(result["nll"], math.fsum(losses) / len(losses), places=6)
            self.assertAlmostEqual(result["perplexity"], math.exp(result["nll"]), places=6)
        self.assertIn(b"perplexity", inlay("perplexity", TINY, "-f", text))

    def test_perplexity_against_another_type(self):
        text = self.write("text.txt", b"The quick brown fox jumps over the lazy dog; 17 of them do not. " * 5)
        same = inlay_json("perplexity", TINY, "-f", text, "--kv", "f32", "--against", "f32", "--ctx", 40)
        self.assertEqual((same["mean_kl"], same["p99_kl"], same["max_kl"], same["top1_agreement"]), (0, 0, 0, 1))
        self.assertEqual((same["nll_difference"], same["nll_difference_se"], same["mean_kl_se"]), (0, 0, 0))
        alone = inlay_json("perplexity", TINY, "-f", text, "--kv", "f32", "--ctx", 40)
        self.assertEqual((same["nll"], same["tokens"]), (alone["nll"], alone["tokens"]))

        tokens = json.loads(inlay("tokenize", TINY, "-f", text))
        windows = {("--ctx", 40): [(b, b + 40, b + 21) for b in range(0, len(tokens) - 39, 40)],
                   ("--ctx", 64, "--stride", 50): self.sliding(len(tokens), 64, 50)}
        for types in ((["--kv", "f16"], ["--kv", "f32"]), (["--kv-v", "f16", "--kv", "f32"], ["--kv", "f32"])):
            for arguments, expected in windows.items():
                tested, reference = (self.rows(tokens, expected, kv) for kv in types)
                kls = sorted(map(self.kl, tested, reference))
                targets = [tokens[i] for _, end, first in expected for i in range(first, end)]
                differences = [self.loss(a, t) - self.loss(b, t) for a, b, t in zip(tested, reference, targets)]
                n, mean = len(kls), math.fsum(differences) / len(kls)
                self.assertEqual(n, len(targets))
                place = 0.99 * (n - 1)
                p99 = kls[int(place)] + place % 1 * (kls[min(int(place) + 1, n - 1)] - kls[int(place)])
                se = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (n - 1) / n)
                result = inlay_json("perplexity", TINY, "-f", text, *types[0], "--against", "f32", *arguments)
                self.assertEqual(result["tokens"], n)
                self.assertTrue(0 < result["mean_kl"] < result["p99_kl"] <= result["max_kl"] < 1e-3, result)
                for name, value in (("mean_kl", math.fsum(kls) / n), ("p99_kl", p99), ("max_kl", kls[-1])):
                    self.assertAlmostEqual(result[name], value, delta=1e-3 * value + 1e-12, msg=name)
                self.assertAlmostEqual(result["nll_difference"], mean, delta=1e-9)
                self.assertAlmostEqual(result["nll_difference_se"], se, delta=1e-6 * se)
                agreed = sum(a.index(max(a)) == b.index(max(b)) for a, b in zip(tested, reference))
                self.assertEqual(result["top1_agreement"], agreed / n)
        self.assertEqual((result["kv"], result["against"]), ("f32/f16", "f32"))
        plain = inlay("perplexity", TINY, "-f", text, *types[0], "--against", "f32")
        self.assertIn(b"f32/f16 against f32: loss ", plain)

    def test_perplexity_against_other_activations(self):
        model = os.path.join(DATA, "quant_models", "q_Q4_1.gguf")
        text = self.write("text.txt", b"The quick brown fox jumps over the lazy dog; 17 of them do not. " * 5)
        command = ["perplexity", model, "-f", text, "--kv", "f32", "--ctx", 40]
        same = inlay_json(*command, "--compute", "f32", "--against-compute", "f32")
        self.assertEqual((same["mean_kl"], same["nll_difference"], same["top1_agreement"]), (0, 0, 1))
        other = inlay_json(*command, "--against-compute", "f32")
        self.assertEqual((other["compute"], other["against_compute"], other["against"]), ("auto", "f32", "f32"))
        self.assertTrue(0 < other["mean_kl"] < 0.01, other)
        exact = inlay_json(*command, "--compute", "f32")
        self.assertAlmostEqual(other["nll"] - other["nll_difference"], exact["nll"], places=9)
        plain = inlay("perplexity", model, "-f", text, "--against", "f32", "--against-compute", "f32")
        self.assertIn(b"auto with f16 against f32 with f32: loss ", plain)

    def rows(self, tokens, windows, kv):
        """The rows of logits that score the windows' tokens."""
        out = os.path.join(self.folder, "logits.npy")
        rows = []
        for begin, end, first in windows:
            inlay("logits", TINY, "--ids", ids(tokens[begin:end]), "--out", out, *kv)
            (_, n), values = read_npy(out)
            rows += [values[(i - begin - 1) * n:(i - begin) * n] for i in range(first, end)]
        return rows

    @staticmethod
    def kl(tested, reference):
        def log_softmax(row):
            largest = max(row)
            total = largest + math.log(math.fsum(math.exp(x - largest) for x in row))
            return [x - total for x in row]
        return math.fsum(math.exp(r) * (r - t) for r, t in zip(log_softmax(reference), log_softmax(tested)))

    def test_types_of_keys_and_values(self):
        common = ["bench", TINY, "--prompt", 20, "--gen", 2, "--reps", 1]
        for options, name in (([], "f16"), (["--kv", "f32"], "f32"), (["--kv-k", "f32"], "f32/f16"),
                              (["--kv-v", "f32"], "f16/f32"), (["--kv-k", "f32", "--kv-v", "f32"], "f32"),
                              (["--kv-v", "f16", "--kv", "f32"], "f32/f16")):
            self.assertEqual(inlay_json(*common, *options)["kv"], name)
        sizes = [inlay_json("info", TINY, *options)["estimate"]["kv_bytes_per_token"]
                 for options in ([], ["--kv-k", "f32"], ["--kv", "f32"])]
        self.assertEqual((2 * sizes[1], sizes[2]), (3 * sizes[0], 2 * sizes[0]))

    def test_a_budget_for_the_cache(self):
        text = self.write("text.txt", b"The quick brown fox. " * 60)
        commands = (["run", TINY, "-f", text, "-n", 2, "--ctx", 4000, "--ignore-eos"], ["perplexity", TINY, "-f", text],
                    ["perplexity", TINY, "-f", text, "--against", "f32"],
                    ["logits", TINY, "-f", text, "--out", os.path.join(self.folder, "logits.npy")],
                    ["bench", TINY, "--prompt", 1200, "--gen", 2, "--reps", 1],
                    ["bench", TINY, "--parallel", 2, "--prompt", 600, "--gen", 2, "--reps", 1])
        for command in commands:
            inlay_json(*command, "--cache-mb", 64)
            error = inlay_json(*command, "--cache-mb", 1, "--kv", "f32", status=1)["error"]
            self.assertEqual(error["name"], "INLAY_E_CACHE_FULL", command)

    @staticmethod
    def sliding(n_tokens, n_context, stride):
        windows, scored, begin = [], 1, 0
        while scored < n_tokens:
            end = min(begin + n_context, n_tokens)
            windows.append((begin, end, scored))
            scored, begin = end, begin + stride
        return windows

    @staticmethod
    def loss(logits, token):
        largest = max(logits)
        return largest + math.log(math.fsum(math.exp(x - largest) for x in logits)) - logits[token]


class Errors(WithFolder):
    def check(self, name, *arguments, status=1):
        done = subprocess.run([INLAY, *arguments, "--json"], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, status)
        error = json.loads(done.stdout)["error"]
        self.assertEqual(error["name"], name)
        self.assertTrue(error["message"])
        self.assertIn(error["message"], done.stderr.decode())
        return error["message"]

    def check_usage(self, *arguments):
        return self.check("INLAY_E_INVALID_ARGUMENT", *arguments, status=2)

    def test_files(self):
        for command in (["run", "MODEL", "-p", "x"], ["info", "MODEL"], ["tokenize", "MODEL", "-p", "x"]):
            at = lambda path: [path if a == "MODEL" else a for a in command]
            self.check("INLAY_E_IO", *at(os.path.join(self.folder, "missing.gguf")))
            whole = read_bytes(TINY)
            self.check("INLAY_E_FORMAT", *at(self.write("cut.gguf", whole[:2000])))
            self.check("INLAY_E_FORMAT", *at(self.write("text.gguf", b"not a model")))
        self.check("INLAY_E_FORMAT", "run", self.write("short.gguf", whole[:-1000]), "-p", "x")
        self.check("INLAY_E_IO", "run", TINY, "-f", os.path.join(self.folder, "missing.txt"))

    def test_usage(self):
        for arguments in ([], ["run", TINY], ["run", TINY, "-p", "x", "--ids", "1"], ["fly", TINY],
                          ["run", TINY, "-p", "x", "--kv", "q4"], ["run", TINY, "--ids", "1,two"],
                          ["logits", TINY, "--ids", "1"]):
            self.check_usage(*arguments)

    def test_numbers_outside_their_range(self):
        run = ["run", TINY, "-p", "x"]
        huge = str(2**64)
        wrong = {"-n": [run, "-1", huge, "2147483648", "1.5", "0x10", "many", ""], "--seed": [run, "-1", huge],
                 "--temp": [run, "-1", "101", "nan", "inf", "1e999"], "--top-k": [run, "-1", "4294967296"],
                 "--top-p": [run, "-0.1", "2"], "--min-p": [run, "1.01"], "--threads": [run, "-1", "257", huge],
                 "--ctx": [run, "-1", "2147483648"], "--reps": [["bench", TINY], "0", "-1"],
                 "--gen": [["bench", TINY], "-1"], "--prompt": [["bench", TINY], huge],
                 "--depth": [["bench", TINY], "-1", "2147483647"],
                 "--chunk": [["logits", TINY, "-p", "x", "--out", "x.npy"], "-1", "4097", "99999"],
                 "--from": [["logits", TINY, "-p", "x", "--out", "x.npy"], "-1", "999"],
                 "--cache-mb": [run, "-1", "1.5", "1000000001"],
                 "--stride": [["perplexity", TINY, "-f", TINY, "--ctx", "8"], "0", "-1", "8"]}
        for option, (command, *values) in wrong.items():
            for value in values:
                message = self.check_usage(*command, option, value)
                self.assertTrue(message.startswith(option + ":"), message)
        for command, value in ((["info", TINY, "--threads"], "300"), (["info", TINY, "--ctx"], "-1"),
                               (["perplexity", TINY, "-f", TINY, "--ctx"], "3")):
            message = self.check_usage(*command, value)
            self.assertTrue(message.startswith(command[-1] + ":"), message)
        self.assertIn("nothing to measure", self.check_usage("bench", TINY, "--prompt", "0", "--gen", "0"))

    def test_the_largest_numbers(self):
        inlay("run", TINY, "--ids", "1", "-n", 2**31 - 1, "--ctx", 8, "--temp", 100, "--top-k", 2**32 - 1, "--top-p", 1,
              "--min-p", 1, "--seed", 2**64 - 1, "--threads", 256)
        self.assertEqual(inlay_json("info", TINY, "--ctx", 2**31 - 1)["estimate"]["context_tokens"], 2**31 - 1)

    def test_empty_names(self):
        for arguments in (["run", TINY, "-f", ""], ["perplexity", TINY, "-f", ""], ["tokenize", TINY, "-f", ""],
                          ["run", TINY, "--ids", ""], ["detokenize", TINY, "--ids", "@"],
                          ["logits", TINY, "-p", "x", "--out", ""]):
            self.assertIn(arguments[-2], self.check_usage(*arguments))
        self.assertIn("MODEL", self.check_usage("info", ""))

    def test_lists_of_ids(self):
        for wrong in ("[1,2", "1,2]", "[", "]", "1,,2", "1,2,", ",1", "1;2", "-1", "1.5", "[[1]]", "1 [2]", "9" * 11):
            message = self.check_usage("run", "missing.gguf", "--ids", wrong)
            self.assertTrue(message.startswith("--ids:"), message)
        in_file = "@" + self.write("ids", b"[65,\n66]\n")
        for right in ("65,66", " 65 66\n", "[65, 66]", "[ 65 ,66 ]", "65 , 66", in_file):
            self.assertEqual(inlay("detokenize", TINY, "--ids", right), inlay("detokenize", TINY, "--ids", "65 66"))
        self.assertEqual(inlay("detokenize", TINY, "--ids", "[]"), b"")
        self.assertIn("no tokens", self.check("INLAY_E_INVALID_ARGUMENT", "run", TINY, "--ids", "[]"))

    def test_unknown_commands(self):
        message = self.check_usage("bogus", TINY)
        self.assertIn("'bogus' is not a command", message)
        for arguments in (["bogus"], []):
            message = self.check_usage(*arguments)
            for command in ("run", "logits", "perplexity", "tokenize", "detokenize", "info", "bench"):
                self.assertIn(command, message)

    def test_json_before_the_command(self):
        command = ["run", TINY, "--ids", "1,2,3", "-n", "4", "--ignore-eos"]
        self.assertEqual(json.loads(inlay("--json", *command))["tokens"], inlay_json(*command)["tokens"])
        error = json.loads(inlay("--json", "info", "missing.gguf", status=1))["error"]
        self.assertEqual((error["name"], error["code"]), ("INLAY_E_IO", -3))

    def test_json_and_logits_do_not_share_stdout(self):
        self.assertIn("--out", self.check_usage("logits", TINY, "-p", "x", "--out", "-"))

    def test_plain_errors_leave_stdout_empty(self):
        self.assertEqual(inlay("info", "missing.gguf", status=1), b"")

    def test_help_tells_the_exit_statuses(self):
        self.assertIn(b"Exit status", inlay("--help"))
        self.assertIn(b"--ignore-eos", inlay("run", "--help"))
        self.assertRegex(inlay("run", "--help"), rb"--top-p N=0 .*; 0 or 1: all\n")
        self.assertTrue(inlay("--version").startswith(b"inlay 0."))

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            for arguments in (["info", TINY], ["--help"], ["run", "--help"], ["--version"],
                              ["run", TINY, "--ids", "1"], ["logits", TINY, "--ids", "1", "--out", "-"]):
                done = subprocess.run([INLAY, *arguments], stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 1, arguments)
                self.assertTrue(done.stderr.startswith(b"inlay: "))


@unittest.skipUnless(os.path.exists(SMALL) and os.path.exists(SMALL_GOLDEN), "no small model or no reference data")
class SmallModel(WithFolder):
    @classmethod
    def setUpClass(cls):
        cls.golden = json.loads(read_bytes(SMALL_GOLDEN))

    def test_greedy_text(self):
        for name in ("english", "code", "chat"):
            prompt = self.golden["prompts"][name]
            reply = inlay_json("run", SMALL, "-p", prompt["text"], "--special", "-n", 64, "--ignore-eos", *EXACT)
            self.assertEqual(reply["prompt_tokens"], prompt["n_tokens"])
            certain = next((i for i, margin in enumerate(prompt["greedy_margins"]) if margin < 0.02), 64)
            self.assertEqual(reply["tokens"][:certain], prompt["greedy_ids"][:certain], name)

    def test_perplexity(self):
        golden = self.golden["perplexity"]
        text = os.path.join(REFERENCE, "gen", "texts", golden["text_file"])
        exact = inlay_json("perplexity", SMALL, "-f", text, *EXACT)
        self.assertEqual(exact["tokens"], golden["n_tokens"] - 1)
        self.assertLess(abs(exact["nll"] - golden["mean_nll"]), 1e-4)
        automatic = inlay_json("perplexity", SMALL, "-f", text)
        self.assertLess(abs(automatic["nll"] - golden["mean_nll"]), 0.02)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
