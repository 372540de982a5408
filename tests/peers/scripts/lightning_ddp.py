# Lightning: a LightningModule with the Trainer's strategy ddp on two CPU processes. Knows nothing of fleetrun.
import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.losses = []

    def training_step(self, batch, _):
        inputs, wanted = batch
        loss = torch.nn.functional.mse_loss(self.layer(inputs), wanted)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


lightning.seed_everything(3, verbose=False)
inputs = torch.randn(256, 4)
data = TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
line = Line()
trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=5, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(line, DataLoader(data, batch_size=16, shuffle=True))
weights = line.layer.weight.detach()
all_weights = trainer.strategy.all_gather(weights)
assert all(torch.equal(other, weights) for other in all_weights), "the ranks' weights differ"
assert line.losses[-1] < 0.01 * line.losses[0], line.losses
print(f"trained on {trainer.world_size} ranks, this is {trainer.global_rank}")
