"""torch_prepare.py LIST: images/s of PIL and torchvision's transforms in one thread, over the files of a list `path label`."""
import io
import pathlib
import sys
import time

import torch
import torchvision.transforms as transforms
from PIL import Image

torch.set_num_threads(1)
paths = [line.rsplit(" ", 1)[0] for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
pipeline = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                               transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


def prepare(path):
    return pipeline(Image.open(io.BytesIO(pathlib.Path(path).read_bytes())).convert("RGB"))


for path in paths[:20]:
    prepare(path)
start = time.perf_counter()
for path in paths:
    prepare(path)
print(len(paths) / (time.perf_counter() - start))
