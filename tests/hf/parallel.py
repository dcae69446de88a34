"""One of two processes with half a model each, started by torchrun: `parallel.py FOLDER` notes what it generated."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch
import transformers

from lookahead import Lookahead
from tests.models import prompt

warnings.simplefilter("ignore")
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], tp_plan="auto", dtype=torch.float32)
model.generation_config.eos_token_id = None
said = {"parts": model.tp_size, "equal": [], "forwards": []}
lookahead = Lookahead(cost="linear:0.001" if torch.distributed.get_rank() == 0 else None)  # so that they differ
for rows in (1, 2):
    ids = torch.cat([prompt(seed=seed) for seed in range(rows)])
    for settings in ({}, {"do_sample": True, "temperature": 0.3}) if rows == 1 else ({},):
        outputs = []
        for custom in (None, lookahead):
            torch.manual_seed(0)
            outputs.append(model.generate(ids, max_new_tokens=40, custom_generate=custom, **settings))
        said["equal"].append(torch.equal(*outputs))
        said["forwards"].append(lookahead.stats.forwards)
(Path(sys.argv[1]) / f"said{torch.distributed.get_rank()}.json").write_text(json.dumps(said))
torch.distributed.destroy_process_group()
