"""Trace a function, execute it fused, look at the report."""
import torch
from fxfuser import execute, explain
from torch.fx.experimental.proxy_tensor import make_fx

x, bias = torch.randn(64, 256), torch.randn(256)
gm = make_fx(lambda x, b: torch.softmax(torch.nn.functional.gelu(x + b), dim=-1))(x, bias)
out = execute(gm, x, bias, executor="nvfuser")
print("largest difference to eager below 1e-6:", bool((out - gm(x, bias)).abs().max() < 1e-6))
print(explain(gm, x, bias))
