"""transformers behind python_peer.py: transformers_worker.py MODEL.gguf THREADS

transformers reads the GGUF file itself and turns its weights into f32; the bf16 model is that one rounded.
A question {dtype, sessions, prompt, gen} is answered by {seconds} of one greedy batch of random prompts.
"""
import copy
import json
import os
import sys
import time

import torch
import transformers

path, n_threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(n_threads)
transformers.utils.logging.disable_progress_bar()
exact = transformers.AutoModelForCausalLM.from_pretrained(os.path.dirname(path), gguf_file=os.path.basename(path),
                                                          dtype=torch.float32)
models = {"f32": exact, "bf16": copy.deepcopy(exact).to(torch.bfloat16)}
print(json.dumps({"version": transformers.__version__, "torch": torch.__version__.split("+")[0]}), flush=True)

for line in sys.stdin:
    question = json.loads(line)
    model, n_new = models[question["dtype"]], question["gen"]
    prompts = torch.randint(model.config.vocab_size, (question["sessions"], question["prompt"]))
    with torch.inference_mode():
        start = time.perf_counter()
        tokens = model.generate(prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=n_new,
                                min_new_tokens=n_new, do_sample=False, eos_token_id=None, pad_token_id=0)
        seconds = time.perf_counter() - start
    assert tokens.shape[1] == question["prompt"] + n_new, tokens.shape
    print(json.dumps({"seconds": seconds}), flush=True)
