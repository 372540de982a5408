#!/usr/bin/env python3
"""How long training steps of torchvision's ResNet-50 take on the first GPU, with a batch of noise that is there already.

usage: torch_step_gpu.py BATCH f32|tf32|f16|bf16 eager|eager-nchw|compiled STEPS

Warms up with STEPS steps, then prints the images per second of STEPS more. Channels are last, except with eager-nchw.
"""
import sys
import time

import torch
import torchvision


def main():
    batch, kind, way, steps = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = kind != "f32"
    layout = torch.contiguous_format if way == "eager-nchw" else torch.channels_last
    model = torchvision.models.resnet50().cuda().to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda", enabled=kind == "f16")
    run = torch.compile(model) if way == "compiled" else model
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=layout)
    labels = torch.randint(1000, (batch,), device="cuda")
    narrow = torch.bfloat16 if kind == "bf16" else torch.float16

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", narrow, enabled=kind in ("f16", "bf16")):
            loss = torch.nn.functional.cross_entropy(run(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    def seconds():
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        return time.perf_counter() - start

    seconds()
    took = seconds()
    print(f"PyTorch {torch.__version__}, {kind}, {way}: batch {batch}, {steps} steps: "
          f"{steps * batch / took:.1f} images/s, {1000 * took / steps:.3f} ms per step")


if __name__ == "__main__":
    main()
