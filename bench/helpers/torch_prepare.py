"""The peer of bench/prepare: images/s of torchvision in one thread, over the files of a list `path label`, in the last of the passes
that it takes to reach its speed.

usage: torch_prepare.py LIST pil|tensors     pil: Pillow decodes and resizes; tensors: torchvision does, on bytes (uint8)
"""
import io
import pathlib
import sys
import time

import torch
import torchvision
from PIL import Image
from steady import warmed_up
from torchvision.transforms import v2

MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def preparation(way):
    to_tensor = [v2.PILToTensor()] if way == "pil" else []
    pipeline = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), *to_tensor,
                           v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)])
    if way == "pil":
        return lambda path: pipeline(Image.open(io.BytesIO(pathlib.Path(path).read_bytes())).convert("RGB"))
    rgb = torchvision.io.ImageReadMode.RGB
    return lambda path: pipeline(torchvision.io.decode_jpeg(torchvision.io.read_file(path), mode=rgb))


def main():
    torch.set_num_threads(1)
    paths = [line.rsplit(" ", 1)[0] for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    prepare, rates = preparation(sys.argv[2]), []
    while not warmed_up(rates):
        start = time.perf_counter()
        for path in paths:
            prepare(path)
        rates.append(len(paths) / (time.perf_counter() - start))
    print(rates[-1])


if __name__ == "__main__":
    main()
