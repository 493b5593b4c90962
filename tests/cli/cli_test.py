#!/usr/bin/env python3
"""The command line as its users see it: output, files, exit statuses. Only Python's standard library is needed.

usage: cli_test.py INLAY SOURCE_DIR [unittest arguments]
The tests of the small model and of the reference data skip themselves when these are not there.
"""
import array
import base64
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
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
SMALL = os.path.join(os.environ.get("INLAY_MODELS") or os.path.join(SOURCE, "models"), "smollm2-135m-instruct-q4_1.gguf")
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
        self.assertEqual(set(reply), {"tokens", "text", "prompt_tokens", "reused_tokens", "ttft_ms", "decode_tok_s", "finish"})
        self.assertEqual(reply["tokens"], GOLDEN["greedy_ids"])
        self.assertEqual((reply["prompt_tokens"], reply["reused_tokens"], reply["finish"]), (48, 0, "length"))
        self.assertGreater(reply["ttft_ms"], 0)
        self.assertGreater(reply["decode_tok_s"], 0)

    def test_text_is_what_the_tokens_say(self):
        arguments = ["run", TINY, "-p", "Once upon a time", "-n", 24, "--ignore-eos", "--seed", 5, "--temp", 1, "--top-k", 40,
                     "--top-p", 0.95, "--min-p", 0.01]
        reply = inlay_json(*arguments)
        self.assertEqual(len(reply["tokens"]), 24)
        plain = inlay(*arguments).decode()
        self.assertEqual(plain.rstrip("\n"), reply["text"].rstrip("\n"))
        path = self.write("prompt.txt", b"Once upon a time")
        from_file = inlay_json("run", TINY, "-f", path, *arguments[4:])
        self.assertEqual(from_file["tokens"], reply["tokens"])
        self.assertEqual(inlay_json("run", TINY, "-f", "-", *arguments[4:], text=b"Once upon a time")["tokens"], reply["tokens"])

    def test_threads_and_instructions_change_nothing(self):
        arguments = ["run", TINY, "--ids", "@" + self.write("ids.json", b"[1, 2, 3,\n 4, 5]"), "-n", 16, "--ignore-eos"]
        expected = inlay_json(*arguments)["tokens"]
        for more in (["--threads", 1], ["--threads", 3], ["--instructions", "portable"]):
            self.assertEqual(inlay_json(*arguments, *more)["tokens"], expected)

    def test_the_context_ends_the_text(self):
        reply = inlay_json("run", TINY, "--ids", "1 2 3 4", "-n", 0, "--ctx", 20, "--ignore-eos")
        self.assertEqual(reply["finish"], "length")
        self.assertLessEqual(len(reply["tokens"]), 20 - 4 + 1)
        error = inlay_json("run", TINY, "--ids", "1 2 3 4", "--ctx", 3, status=1)["error"]
        self.assertEqual(error["name"], "INLAY_E_CONTEXT_FULL")

    def test_one_token_has_no_rate(self):
        self.assertIsNone(inlay_json("run", TINY, "--ids", 1, "-n", 1, "--ignore-eos")["decode_tok_s"])

    def test_interrupt_prints_what_is_there(self):
        arguments = ["run", TINY, "--ids", "1,2,3", "-n", 10000000, "--ctx", 10000000, "--ignore-eos", "--json"]
        process = subprocess.Popen([INLAY, *map(str, arguments)], stdout=subprocess.PIPE)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(output)["finish"], "cancelled")


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
        self.assertEqual(inlay_json("logits", TINY, "--ids", "1", "--out", missing, status=1)["error"]["name"], "INLAY_E_IO")

    def test_the_model_is_never_the_output(self):
        model, link = self.write("model.gguf", read_bytes(TINY)), os.path.join(self.folder, "link.gguf")
        os.symlink(model, link)
        for out in (model, link):
            inlay("logits", model, "--ids", "1", "--out", out, status=2)
        self.assertEqual(read_bytes(model), read_bytes(TINY))

    def test_a_pipe_is_written_as_it_comes(self):
        whole = os.path.join(self.folder, "logits.npy")
        inlay("logits", TINY, "--ids", "1,2", "--out", whole)
        self.assertEqual(inlay("logits", TINY, "--ids", "1,2", "--out", "/dev/stdout"), read_bytes(whole))


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
        self.assertEqual(tokens, json.loads(inlay("tokenize", TINY, "-p", text, "--no-bos", "--json")))
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

    def test_bench(self):
        result = inlay_json("bench", TINY, "--prompt", 32, "--gen", 8, "--depth", 16, "--reps", 3, "--threads", 1)
        for name in ("prefill_tok_s", "decode_tok_s"):
            self.assertEqual(len(result[name + "_runs"]), 3)
            self.assertTrue(0 < result[name + "_min"] <= result[name] <= result[name + "_max"])
        self.assertEqual((result["reused_tokens"], result["recomputed_tokens"]), (0, 0))
        self.assertEqual((result["threads"], result["compute"]), (1, "auto"))
        self.assertIn(result["instructions"], ("portable", "avx2", "avx512"))
        self.assertIsNone(inlay_json("bench", TINY, "--prompt", 0, "--gen", 4, "--reps", 1)["prefill_tok_s"])

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
                losses += [self.loss(values[(i - begin - 1) * n:(i - begin) * n], tokens[i]) for i in range(score_from, end)]
            result = inlay_json("perplexity", TINY, "-f", text, *arguments)
            self.assertEqual(result["tokens"], len(losses))
            self.assertAlmostEqual(result["nll"], math.fsum(losses) / len(losses), places=6)
            self.assertAlmostEqual(result["perplexity"], math.exp(result["nll"]), places=6)
        self.assertIn(b"perplexity", inlay("perplexity", TINY, "-f", text))

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
        for arguments in ([], ["run", TINY], ["run", TINY, "-p", "x", "--ids", "1"], ["run", TINY, "-p", "x", "--kv", "q4"],
                          ["run", TINY, "--ids", "1,two"], ["fly", TINY], ["logits", TINY, "--ids", "1"]):
            self.check("INLAY_E_INVALID_ARGUMENT", *arguments, status=2)
        self.check("INLAY_E_INVALID_ARGUMENT", "run", TINY, "-p", "x", "--temp", "-1")

    def test_plain_errors_leave_stdout_empty(self):
        self.assertEqual(inlay("info", "missing.gguf", status=1), b"")

    def test_help_tells_the_exit_statuses(self):
        self.assertIn(b"Exit status", inlay("--help"))
        self.assertIn(b"--ignore-eos", inlay("run", "--help"))
        self.assertTrue(inlay("--version").startswith(b"inlay 0."))

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            self.assertEqual(subprocess.run([INLAY, "info", TINY], stdout=full, stderr=subprocess.DEVNULL).returncode, 1)


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
