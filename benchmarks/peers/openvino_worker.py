"""OpenVINO GenAI behind python_peer.py: openvino_worker.py MODEL.gguf THREADS

A question {prompt, gen} is answered, for random tokens, by {first_token_ms, decode_tok_s} (null with one token).
"""
import json
import random
import sys
import time

import numpy
import openvino
import openvino_genai

path, n_threads = sys.argv[1], int(sys.argv[2])
pipeline = openvino_genai.LLMPipeline(path, "CPU", INFERENCE_NUM_THREADS=n_threads)
print(json.dumps({"version": openvino_genai.__version__}), flush=True)


def generate(prompt, n_new):
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = config.min_new_tokens = n_new
    config.do_sample, config.ignore_eos, config.apply_chat_template = False, True, False
    tokens = numpy.array([prompt], dtype=numpy.int64)
    inputs = openvino_genai.TokenizedInputs(openvino.Tensor(tokens), openvino.Tensor(numpy.ones_like(tokens)))
    start = time.perf_counter()
    result = pipeline.generate(inputs, config)
    seconds = time.perf_counter() - start
    assert len(result.tokens[0]) == n_new, result.tokens
    return seconds, result.perf_metrics


for line in sys.stdin:
    question = json.loads(line)
    prompt = [random.randrange(300, 40000) for _ in range(question["prompt"])]
    seconds, metrics = generate(prompt, question["gen"])
    one = question["gen"] == 1
    print(json.dumps({"first_token_ms": 1e3 * seconds if one else metrics.get_ttft().mean,
                      "decode_tok_s": None if one else 1e3 / metrics.get_tpot().mean}), flush=True)
