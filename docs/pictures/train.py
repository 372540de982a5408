# A script that fails on rank 1, for docs/pictures/failure.svg.
import os
import time

LABELS = {"cat": 0, "dog": 1}

rank = int(os.environ["RANK"])
print(f"rank {rank} of {os.environ['WORLD_SIZE']}: reading labels", flush=True)
time.sleep(0.5)  # seconds; until rank 0 has printed its line, too
label = LABELS["dog" if rank == 0 else "bird"]
time.sleep(60)  # seconds; rank 0 waits until fleetrun stops it
