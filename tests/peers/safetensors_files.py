"""Safetensors files as numpy arrays, for Pythons without the package safetensors."""
import json
import struct

import numpy

DTYPES = {'float32': 'F32', 'int32': 'I32', 'int64': 'I64'}
NUMPY_TYPES = {'F32': numpy.float32, 'I32': numpy.int32, 'I64': numpy.int64}


def write_safetensors(path, tensors):
    header, chunks, offset = {}, [], 0
    for name, array in tensors.items():
        raw = numpy.ascontiguousarray(array).tobytes()
        header[name] = {'dtype': DTYPES[array.dtype.name], 'shape': list(array.shape), 'data_offsets': [offset, offset + len(raw)]}
        chunks.append(raw)
        offset += len(raw)
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + b''.join(chunks))


def read_safetensors(path):
    with open(path, 'rb') as file:
        length = struct.unpack('<Q', file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    header.pop('__metadata__', None)
    return {name: numpy.frombuffer(data[slice(*facts['data_offsets'])], NUMPY_TYPES[facts['dtype']]).reshape(facts['shape'])
            for name, facts in header.items()}


def error_of(found, wanted):
    """The L2 distance over the norm of `wanted`."""
    return numpy.linalg.norm(found - wanted) / (numpy.linalg.norm(wanted) or 1.0)
