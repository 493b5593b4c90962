"""llama.cpp's own tools, and a probe against its library: PEERS_DIR/lcbuild/bin, built of the source in llama.cpp/."""
import json
import os
import sys

import table

PROBE_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llama_probe.cpp")


class LlamaCpp:
    def __init__(self, peers):
        self.peers = peers
        self.bin = os.path.join(peers, "lcbuild", "bin")
        if not os.path.exists(os.path.join(self.bin, "llama-bench")):
            sys.exit(f"no llama.cpp in {self.bin}: build llama-bench and llama-batched-bench for this machine there")
        self.environment = {"LD_LIBRARY_PATH": self.bin}

    def run(self, tool, *arguments):
        return table.run([os.path.join(self.bin, tool), *arguments], self.environment)

    def speed(self, model, prompt, gen, depth, threads):
        out = self.run("llama-bench", "-m", model, "-t", threads, "-p", prompt, "-n", gen, "-d", depth, "-fa", 1,
                       "-r", 1, "-o", "json")
        return json.loads(out)[0]["avg_ts"]

    def parallel_speed(self, model, sessions, prompt, gen, threads):
        out = self.run("llama-batched-bench", "-m", model, "-t", threads, "-c", sessions * (prompt + gen + 8),
                       "-b", 2048, "-ub", 512, "-fa", 1, "-npp", prompt, "-ntg", gen, "-npl", sessions,
                       "--output-format", "jsonl")
        return json.loads(next(line for line in out.splitlines() if line.startswith("{")))["speed_tg"]

    def probe(self, model, threads):
        """load_ms, reload_ms, loaded_resident_bytes, first_token_ms (20 tokens), shared_first_token_ms (1,024 shared,
        20 new)."""
        return json.loads(table.run([self.built_probe(), model, threads], self.environment))

    def built_probe(self):
        probe = os.path.join(self.peers, "llama_probe")
        if not os.path.exists(probe) or os.path.getmtime(probe) < os.path.getmtime(PROBE_SOURCE):
            source = os.path.join(self.peers, "llama.cpp")
            table.run(["g++", "-O2", "-std=c++17", f"-I{source}/include", f"-I{source}/ggml/include", PROBE_SOURCE,
                       "-o", probe, f"-L{self.bin}", "-lllama", "-lggml", "-lggml-base"])
        return probe
