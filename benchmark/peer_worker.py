#!/usr/bin/env python3
"""One network in another engine, kept loaded, timed when told to: the language of bench_worker.cpp.

    peer_worker.py ENGINE JSON      JSON: an object with model (path without suffix), input (f32 values), shape, threads, precision;
                                    or inputs, {name: .npy file}, instead of input and shape (ONNX models)

ENGINE: ncnn (reads .param and .bin), onnxruntime, openvino (read .onnx), mnn (reads .mnn). Each runs as its documents say is best
for the latency of one image on the CPU; the classes below show how.
"""
import json
import os
import pathlib
import sys
import time

import numpy as np


class Ncnn:
    """The default options, with the pools of ncnn's own benchmark; fp16 off, which x86 computes in fp32 anyway. With `gpu` its Vulkan
    back end, and fp16 as its options are unless fp32 is asked for."""

    def __init__(self, call):
        import ncnn

        self.ncnn, self.version = ncnn, ncnn.__version__
        self.call = call

    def load(self):
        ncnn, call = self.ncnn, self.call
        self.net = net = ncnn.Net()
        self.pools = ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator()
        net.opt.num_threads = call['threads']
        gpu = call.get('gpu')
        net.opt.use_vulkan_compute = gpu is not None
        if gpu is None or call['precision'] != 'fp16':
            net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        net.opt.use_bf16_storage = call['precision'] == 'bf16'
        if gpu is None:
            net.opt.blob_allocator, net.opt.workspace_allocator = self.pools
        else:
            net.set_vulkan_device(gpu)
        if net.load_param(call['model'] + '.param') != 0 or net.load_model(call['model'] + '.bin') != 0:
            raise RuntimeError('ncnn cannot load the model')
        self.input, self.output = net.input_names()[0], net.output_names()[0]
        return call['precision']

    def prepare(self, data):
        self.data = self.ncnn.Mat(data).clone()

    def run(self):
        extractor = self.net.create_extractor()
        extractor.input(self.input, self.data)
        status, out = extractor.extract(self.output)
        if status != 0:
            raise RuntimeError(f'ncnn: extract returned {status}')
        return out

    @staticmethod
    def values(out):
        return np.array(out)


class OnnxRuntime:
    """All optimisations, one operator at a time on all threads."""

    def __init__(self, call):
        import onnxruntime

        self.ort, self.version = onnxruntime, onnxruntime.__version__
        self.call = call

    def load(self):
        if self.call['precision'] == 'bf16':
            raise NotImplementedError('ONNX Runtime has no bf16 arithmetic on x86')
        options = self.ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.call['threads'], 1
        options.graph_optimization_level = self.ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.execution_mode = self.ort.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 3
        self.session = self.ort.InferenceSession(self.call['model'] + '.onnx', options, providers=['CPUExecutionProvider'])
        return self.call['precision']

    def prepare(self, data):
        self.feed = data if isinstance(data, dict) else {self.session.get_inputs()[0].name: data[None]}

    def run(self):
        return self.session.run(None, self.feed)

    @staticmethod
    def values(out):
        return out[0][0]

    @staticmethod
    def outputs(out):
        return out


class OpenVino:
    """Latency hint, one stream; f32 forced for fp32, the plugin's own choice for bf16 (bf16 where AMX is)."""

    def __init__(self, call):
        import openvino

        self.ov, self.version = openvino, openvino.__version__
        self.call = call

    def load(self):
        config = {'PERFORMANCE_HINT': 'LATENCY', 'NUM_STREAMS': '1', 'INFERENCE_NUM_THREADS': str(self.call['threads'])}
        if self.call['precision'] == 'fp32':
            config['INFERENCE_PRECISION_HINT'] = 'f32'
        compiled = self.ov.Core().compile_model(self.call['model'] + '.onnx', 'CPU', config)
        self.inputs, self.outputs_of = compiled.inputs, len(compiled.outputs)
        self.request = compiled.create_infer_request()
        chosen = str(compiled.get_property('INFERENCE_PRECISION_HINT'))
        if self.call['precision'] == 'bf16' and 'bfloat16' not in chosen:
            raise NotImplementedError(f'OpenVINO chooses {chosen} on this processor')
        return self.call['precision']

    def prepare(self, data):
        if not isinstance(data, dict):
            self.request.set_input_tensor(self.ov.Tensor(data[None].copy()))
            return
        for port in self.inputs:
            self.request.set_tensor(port, self.ov.Tensor(next(data[name] for name in port.get_names() if name in data)))

    def run(self):
        self.request.infer()
        return self.request

    @staticmethod
    def values(out):
        return out.get_output_tensor().data[0].copy()

    def outputs(self, out):
        return [out.get_output_tensor(i).data.copy() for i in range(self.outputs_of)]


class Mnn:
    """The CPU backend, precision high for fp32; low, its fastest, for bf16."""

    def __init__(self, call):
        import MNN

        self.mnn, self.version = MNN, MNN.version()
        self.call = call

    def load(self):
        if self.call['precision'] == 'int8':
            raise NotImplementedError('MNN quantizes by itself: its int8 would be another model')
        self.net = self.mnn.Interpreter(self.call['model'] + '.mnn')
        self.session = self.net.createSession({
            'backend': 'CPU', 'numThread': self.call['threads'],
            'precision': 'high' if self.call['precision'] == 'fp32' else 'low'})
        return 'fp32' if self.call['precision'] == 'fp32' else 'low'

    def prepare(self, data):
        self.to = self.net.getSessionInput(self.session)
        self.data = self.mnn.Tensor(tuple(data[None].shape), self.mnn.Halide_Type_Float, np.ascontiguousarray(data[None]),
                                    self.mnn.Tensor_DimensionType_Caffe)

    def run(self):
        self.to.copyFrom(self.data)  # a run uses up its input's memory
        self.net.runSession(self.session)
        return self.net.getSessionOutput(self.session)

    def values(self, out):
        shape = out.getShape()
        host = self.mnn.Tensor(shape, self.mnn.Halide_Type_Float, np.zeros(shape, np.float32),
                               self.mnn.Tensor_DimensionType_Caffe)
        out.copyToHostTensor(host)
        return np.array(host.getNumpyData())[0]


ENGINES = {'ncnn': Ncnn, 'onnxruntime': OnnxRuntime, 'openvino': OpenVino, 'mnn': Mnn}


def memory_mib(field):
    for line in pathlib.Path('/proc/self/status').read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return 0


def timed(function):
    begin = time.perf_counter()
    result = function()
    return (time.perf_counter() - begin) * 1e3, result


def answer(engine, line):
    """The reply to one line of stdin."""
    word, _, rest = line.strip().partition(' ')
    if word == 'run' and rest.isdigit():
        times, cpu = [], [time.process_time()]
        for _ in range(int(rest)):
            times.append(timed(engine.run)[0])
            cpu.append(time.process_time())
        return {'times_ms': times, 'cpu_ms': [(after - before) * 1e3 for before, after in zip(cpu, cpu[1:])]}
    if word == 'output' and rest:
        values = np.ascontiguousarray(engine.values(engine.run()), np.float32)
        values.tofile(rest)
        return {'shape': values.shape}
    if word == 'outputs' and rest:
        arrays = engine.outputs(engine.run())
        for i, array in enumerate(arrays):
            np.save(f'{rest}/{i}.npy', array)
        return {'count': len(arrays)}
    if word == 'memory':
        engine.run()
        return {'peak_mib': memory_mib('VmHWM:')}
    return {'error': f'{line.strip()!r}: expected run N, output FILE, outputs FOLDER or memory'}


def main():
    def say(value):
        print(json.dumps(value), file=out, flush=True)

    out = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # engines print on stdout
    call = json.loads(sys.argv[2])
    if 'inputs' in call:
        data = {name: np.load(file) for name, file in call['inputs'].items()}
    else:
        data = np.fromfile(call['input'], np.float32).reshape(call['shape'])
    try:
        engine = ENGINES[sys.argv[1]](call)
        try:
            pathlib.Path('/proc/self/clear_refs').write_text('5')  # the peak starts here
        except OSError:
            pass
        base = memory_mib('VmRSS:')
        load_ms, effective = timed(engine.load)
        engine.prepare(data)
        first_ms, _ = timed(engine.run)
    except Exception as error:  # whatever an engine throws is its row's reason
        say({'error': f'{error}'.strip().splitlines()[0] if f'{error}' else repr(error),
             'absent': isinstance(error, (ImportError, NotImplementedError))})
        return 1
    say({'load_ms': load_ms, 'first_ms': first_ms, 'base_mib': base, 'version': engine.version, 'effective': effective})
    for line in sys.stdin:
        say(answer(engine, line))
    return 0


if __name__ == '__main__':
    sys.exit(main())
