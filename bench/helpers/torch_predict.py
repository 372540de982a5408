"""Classes of photographs by torchvision's resnet18: torch_predict.py WEIGHTS LIST BATCH THREADS WORKERS SIDE. Prints the seconds from the
first image to the last, and the label of each image. The weights are a safetensors file of fleetrun."""
import json
import sys
import time

import torch
import torchvision
from PIL import Image
from safetensors import safe_open
from torchvision.transforms import v2


class Photographs(torch.utils.data.Dataset):
    def __init__(self, paths, transform):
        self.paths, self.transform = paths, transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, place):
        with Image.open(self.paths[place]) as image:
            return self.transform(image.convert("RGB"))


def main():
    weights, listed, batch, threads, workers, side = sys.argv[1:2] + sys.argv[2:3] + [int(word) for word in sys.argv[3:7]]
    torch.set_num_threads(threads)
    with safe_open(weights, "pt") as file:
        about = file.metadata()
        state = {name: file.get_tensor(name) for name in file.keys()}
    model = torchvision.models.resnet18(num_classes=int(about["model.class_dim"]))
    model.load_state_dict(state, strict=False)
    model = model.eval().to(memory_format=torch.channels_last)
    transform = v2.Compose([v2.Resize(side * 256 // 224), v2.CenterCrop(side), v2.PILToTensor(), v2.ToDtype(torch.float32),
                            v2.Normalize(json.loads(about["data.mean"]), json.loads(about["data.std"]))])
    paths = open(listed, encoding="utf-8").read().split("\n")[:-1]
    loader = torch.utils.data.DataLoader(Photographs(paths, transform), batch_size=batch, num_workers=workers)
    labels = []
    with torch.inference_mode():
        model(torch.zeros(batch, 3, side, side).contiguous(memory_format=torch.channels_last))
        start = time.perf_counter()
        for images in loader:
            labels += model(images.contiguous(memory_format=torch.channels_last)).argmax(1).tolist()
        print(json.dumps({"seconds": time.perf_counter() - start, "labels": labels}))


main()
