"""torchrun, also where its flags cannot be read: under Python 3.11 older versions of torch turn "--redirects 0" and "3"
into nothing, and start no job (Debian 12 has such a pair). Only that is repaired."""
import sys

from torch.distributed.elastic.multiprocessing import api
from torch.distributed.run import main


def read_streams(_, text):
    if ":" not in text:
        return api.Std(int(text))
    pairs = (item.split(":") for item in text.split(","))
    return {int(rank): api.Std(int(value)) for rank, value in pairs}


if api.Std.from_str("0") is None:
    api.Std.from_str = classmethod(read_streams)
sys.exit(main())
