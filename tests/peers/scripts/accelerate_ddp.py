# accelerate: an Accelerator around an ordinary loop. Knows nothing of fleetrun.
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
torch.manual_seed(3)
inputs = torch.randn(256, 4)
data = TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=16, shuffle=True))
losses = []
for _ in range(5):
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch), wanted)
        accelerator.backward(loss)
        optimizer.step()
        losses.append(loss.item())
weights = accelerator.unwrap_model(model).weight.detach()
all_weights = accelerator.gather(weights)  # one below the other
assert all(torch.equal(other, weights[0]) for other in all_weights), "the ranks' weights differ"
assert losses[-1] < 0.01 * losses[0], losses
print(f"trained on {accelerator.num_processes} ranks, this is {accelerator.process_index}")
accelerator.end_training()
