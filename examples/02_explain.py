"""Why is a node not fused? The report says it for each one, and shows the kernels."""
import torch
from fxfuser import explain
from torch.fx.experimental.proxy_tensor import make_fx

x = torch.rand(32, 128)
gm = make_fx(lambda x: torch.digamma(x.exp() + 1).tanh() @ x.t())(x)
report = explain(gm, x)
print(report)
for row in report.nodes():
    print(report.why(row["name"]))
print(report.source(0))
