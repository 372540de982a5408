# PyTorch: DistributedDataParallel on gloo, as its tutorials have it. Knows nothing of fleetrun.
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
arguments = parser.parse_args()

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())  # DDP makes the weights equal
inputs = torch.randn(256, 4, generator=torch.Generator().manual_seed(7))
data = TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
sampler = DistributedSampler(data)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr)
losses = []
for epoch in range(5):
    sampler.set_epoch(epoch)
    for batch, wanted in DataLoader(data, batch_size=16, sampler=sampler):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
weights = model.module.weight.detach().clone()
all_weights = [torch.empty_like(weights) for _ in range(dist.get_world_size())]
dist.all_gather(all_weights, weights)
assert all(torch.equal(other, weights) for other in all_weights), "the ranks' weights differ"
assert losses[-1] < 0.01 * losses[0], losses
print(f"trained on {dist.get_world_size()} ranks, lr {arguments.lr}")
dist.destroy_process_group()
