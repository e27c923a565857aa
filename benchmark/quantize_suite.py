#!/usr/bin/env python3
"""Quantizes networks of export_suite.py as a user would, by ONNX Runtime's own tools, for `compare.py --onnx FOLDER --precision int8`.

    quantize_suite.py SOURCE TARGET [--half tuning|report] [--filter REGEX] [--list]

SOURCE holds the files of export_suite.py; TARGET gets NAME_FORM.onnx. Forms: `qdq`, quantize_static with QuantizeLinear and
DequantizeLinear, activations of uint8 with zero points, weights of int8 by channel, which ONNX Runtime advises for x86; `s8`, the same with
symmetric activations of int8, as other engines want it; `dynamic`, quantize_dynamic. Ranges come from a few random inputs of the kind
that compare.py gives. A network that the tools refuse is said and left out. Needs onnx and onnxruntime.
"""
import argparse
import logging
import pathlib
import re
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

SAMPLES = 3
FORMS = {
    'qdq': '''resnet18 resnet50 resnet50_b8 mobilenet_v2 mobilenet_v3_small mnasnet1_0 densenet121 efficientnet_b0 regnet_y_800mf regnet_x_400mf
        shufflenet_v2_x1_0 squeezenet1_1 googlenet inception_v3 deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large
        ssdlite320_mobilenet_v3_large hrnet_w18_small dla34 ghostnet_100 mobileone_s0 repvgg_a0 tf_efficientnet_lite0 rexnet_100
        mobilenetv4_conv_small seresnet50 ese_vovnet19b_dw cspresnet50 res2net50_26w_4s mobilenetv2_035 lcnet_050 fastvit_t8 unet yolo_head
        autoencoder style_transfer espcn rrdb kws_dscnn tcn_wavenet tdnn convnextv2_atto visformer_tiny mobilevit_s deit_tiny_patch16_224
        mixer_s16_224 segformer_b0 bert_mini_long whisper_encoder conformer'''.split(),
    's8': 'resnet18 mobilenet_v2 googlenet yolo_head deit_tiny_patch16_224'.split(),
    'dynamic': 'deit_tiny_patch16_224 bert_mini_long whisper_encoder conformer'.split(),
}


def samples(session):
    import compare_onnx

    random = np.random.default_rng(1)
    return [compare_onnx.random_feed(session.get_inputs(), random, {}) for _ in range(SAMPLES)]


def quantize(source, target, form):
    import compare_onnx
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(quantization.CalibrationDataReader):
        def __init__(self, path):
            self.feeds = iter(samples(compare_onnx.session(path)))

        def get_next(self):
            return next(self.feeds, None)

    with tempfile.TemporaryDirectory() as folder:
        prepared = f'{folder}/prepared.onnx'
        quant_pre_process(str(source), prepared, skip_symbolic_shape=True)
        if form == 'dynamic':
            quantization.quantize_dynamic(prepared, target, weight_type=quantization.QuantType.QInt8)
            return
        kind = quantization.QuantType.QUInt8 if form == 'qdq' else quantization.QuantType.QInt8
        quantization.quantize_static(prepared, target, Samples(prepared), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                     activation_type=kind, weight_type=quantization.QuantType.QInt8,
                                     extra_options={'ActivationSymmetric': form == 's8'})


def main():
    import export_suite

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('source', type=pathlib.Path)
    parser.add_argument('target', type=pathlib.Path)
    parser.add_argument('--half', choices=('tuning', 'report'))
    parser.add_argument('--filter', default='')
    parser.add_argument('--list', action='store_true', help='only print names and halves')
    a = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)  # it advises what is done here
    chosen = [(name, form) for form, names in FORMS.items() for name in names
              if re.search(a.filter, f'{name}_{form}') and a.half in (None, export_suite.half_of(name))]
    if a.list:
        print('\n'.join(f'{name + "_" + form:40} {export_suite.half_of(name)}' for name, form in chosen))
        return 0
    a.target.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, form in chosen:
        target = a.target / f'{name}_{form}.onnx'
        if target.exists():
            continue
        try:
            quantize(a.source / f'{name}.onnx', target, form)
            print(target.stem, flush=True)
        except Exception as error:  # whatever ONNX Runtime throws is the network's reason
            target.unlink(missing_ok=True)
            failed += 1
            print(f'{target.stem} is left out: {type(error).__name__}: {str(error).strip().splitlines()[:1]}', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
