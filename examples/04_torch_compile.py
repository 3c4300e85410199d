"""A training step through torch.compile(backend="fxfuser"), beside eager."""

import copy

import fxfuser
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
eager = copy.deepcopy(model)
x, target = torch.randn(8, 16), torch.randint(0, 4, (8,))

compiled = torch.compile(model, backend="fxfuser")
for run in (compiled, eager):
    F.cross_entropy(run(x), target).backward()
for ours, theirs in zip(model.parameters(), eager.parameters(), strict=True):
    torch.testing.assert_close(ours.grad, theirs.grad)
print("gradients equal eager's; generated kernels launched:", fxfuser.stats()["launches"]["host"] > 0)
