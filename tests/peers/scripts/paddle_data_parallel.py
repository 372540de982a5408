# PaddlePaddle: paddle.DataParallel on the CPU, as its tutorials have it. Knows nothing of fleetrun.
import numpy
import paddle
import paddle.distributed as dist
from paddle.io import DataLoader, DistributedBatchSampler, TensorDataset

dist.init_parallel_env()
paddle.seed(3)
inputs = numpy.random.RandomState(7).randn(256, 4).astype("float32")
data = TensorDataset([paddle.to_tensor(inputs), paddle.to_tensor(inputs.sum(axis=1, keepdims=True))])
sampler = DistributedBatchSampler(data, batch_size=16, shuffle=True)
model = paddle.DataParallel(paddle.nn.Linear(4, 1))
optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=model.parameters())
losses = []
for epoch in range(5):
    sampler.set_epoch(epoch)
    for batch, wanted in DataLoader(data, batch_sampler=sampler):
        loss = paddle.nn.functional.mse_loss(model(batch), wanted)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
weights = model.parameters()[0]
all_weights = []
dist.all_gather(all_weights, weights)
assert all(bool((other == weights).all()) for other in all_weights), "the ranks' weights differ"
assert losses[-1] < 0.01 * losses[0], losses
print(f"trained on {dist.get_world_size()} ranks")
