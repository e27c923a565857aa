#!/usr/bin/env python3
"""Exports a suite of networks with random weights as ONNX files, for `compare.py --onnx FOLDER`.

    export_suite.py FOLDER [--half tuning|report] [--filter REGEX] [--list]

Networks come from torchvision, timm and transformers, and from small definitions in suite_models.py for what these lack (U-Net,
super-resolution, text recognition, speech, recommenders). A network whose package is missing, or that the exporter refuses, is
said and left out. Needs `pip install torch torchvision timm transformers onnx onnxscript`; nothing is downloaded besides, weights are random
with a fixed seed.

The suite is split in two by a hash of the network's name: kernels are tuned on one half, both are reported.
"""
import argparse
import contextlib
import hashlib
import os
import pathlib
import re
import sys
import traceback
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

# name -> function that makes (module in its training state, inputs)
SUITE = {}
OPSET = 17


def half_of(name):
    """The half of the suite: batch sizes and quantized forms of a network are in the same one."""
    base = re.sub(r'(_b\d+)?(_qdq|_s8|_dynamic)?$', '', name)
    return ('tuning', 'report')[hashlib.sha256(base.encode()).digest()[0] % 2]


def network(name):
    def register(make):
        SUITE[name] = make
        return make
    return register


def images(*shape):
    import torch

    return (torch.randn(*shape),)


def tokens(*shape, vocabulary=1000):
    import torch

    return torch.randint(0, vocabulary, shape)


def torchvision_networks():
    def classifier(name, size=224, batch=1, **arguments):
        def make():
            import torchvision

            return getattr(torchvision.models, name)(weights=None, **arguments), images(batch, 3, size, size)
        SUITE[name + (f'_b{batch}' if batch > 1 else '')] = make

    for name in ('resnet18', 'resnet50', 'mobilenet_v2', 'mobilenet_v3_small', 'mnasnet1_0', 'densenet121', 'efficientnet_b0',
                 'efficientnet_v2_s', 'regnet_y_800mf', 'regnet_x_400mf', 'convnext_tiny', 'swin_t', 'swin_v2_t', 'maxvit_t',
                 'vit_b_16', 'shufflenet_v2_x1_0', 'squeezenet1_1'):
        classifier(name)
    classifier('googlenet', init_weights=False, aux_logits=False)
    classifier('inception_v3', 299, init_weights=False, aux_logits=False)
    for name in ('resnet50', 'mobilenet_v2', 'shufflenet_v2_x1_0', 'vit_b_16'):
        classifier(name, batch=8)
    for name in ('resnet50', 'mobilenet_v2'):
        classifier(name, batch=32)

    def segmentation(name, size=256):
        def make():
            import suite_models
            import torchvision

            model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None)
            return suite_models.Pick(model, 'out'), images(1, 3, size, size)
        SUITE[name] = make

    for name in ('deeplabv3_mobilenet_v3_large', 'deeplabv3_resnet50', 'lraspp_mobilenet_v3_large', 'fcn_resnet50'):
        segmentation(name)

    def video(name, frames=8):
        def make():
            import torchvision

            return getattr(torchvision.models.video, name)(weights=None), images(1, 3, frames, 112, 112)
        SUITE[name] = make

    for name in ('r3d_18', 'mc3_18', 'r2plus1d_18'):
        video(name)
    video('swin3d_t', 4)

    def detector(name, size, **arguments):
        def make():
            import suite_models
            import torchvision

            model = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, **arguments)
            return suite_models.Detector(model), images(1, 3, size, size)
        SUITE[name] = make

    detector('ssd300_vgg16', 300)
    detector('ssdlite320_mobilenet_v3_large', 320)
    detector('fasterrcnn_mobilenet_v3_large_320_fpn', 320, min_size=320, max_size=320)
    detector('retinanet_resnet50_fpn', 320, min_size=320, max_size=320)

    @network('raft_small')
    def raft():
        import suite_models
        import torchvision

        model = torchvision.models.optical_flow.raft_small(weights=None)
        return suite_models.Flow(model), (*images(1, 3, 128, 160), *images(1, 3, 128, 160))


def timm_networks():
    def add(name, size=224, batch=1, **arguments):
        def make():
            import timm

            return timm.create_model(name, pretrained=False, **arguments), images(batch, 3, size, size)
        SUITE[name + (f'_b{batch}' if batch > 1 else '')] = make

    for name in ('levit_128s', 'levit_256', 'fastvit_t8', 'mobilevit_s', 'mobilevitv2_050', 'pvt_v2_b0', 'edgenext_small',
                 'ghostnet_100', 'mobileone_s0', 'repvgg_a0', 'hrnet_w18_small', 'dla34', 'xcit_nano_12_p16_224', 'poolformer_s12',
                 'efficientformer_l1', 'tf_efficientnet_lite0', 'rexnet_100', 'convmixer_768_32', 'mixer_s16_224',
                 'resmlp_12_224', 'coatnet_nano_rw_224', 'deit_tiny_patch16_224', 'mobilenetv4_conv_small', 'tiny_vit_5m_224',
                 'efficientvit_b0', 'repvit_m0_9', 'inception_next_tiny', 'seresnet50', 'resnest14d', 'res2net50_26w_4s',
                 'ese_vovnet19b_dw', 'cspresnet50', 'convnextv2_atto', 'maxvit_rmlp_pico_rw_256', 'swinv2_cr_tiny_224',
                 'regnety_004', 'mobilenetv2_035', 'lcnet_050', 'nest_tiny', 'visformer_tiny'):
        add(name, 256 if name.endswith('256') and name.startswith('max') else 224)
    add('levit_128s', batch=8)
    add('mobileone_s0', batch=8)


def transformer_networks():
    def text(name, config, model, length=128, **arguments):
        def make():
            import suite_models
            import transformers

            settings = getattr(transformers, config)(**arguments)
            return suite_models.Text(getattr(transformers, model)(settings)), (tokens(1, length),)
        SUITE[name] = make

    text('bert_base', 'BertConfig', 'BertModel', num_hidden_layers=6)
    text('distilbert', 'DistilBertConfig', 'DistilBertModel', n_layers=4)
    text('electra_small', 'ElectraConfig', 'ElectraModel')
    text('mobilebert', 'MobileBertConfig', 'MobileBertModel', num_hidden_layers=8)
    text('albert', 'AlbertConfig', 'AlbertModel', hidden_size=312, num_attention_heads=12, intermediate_size=1248, num_hidden_layers=4)
    text('gpt2', 'GPT2Config', 'GPT2Model', 64, n_layer=6, use_cache=False)
    text('llama_tiny', 'LlamaConfig', 'LlamaModel', 64, hidden_size=512, intermediate_size=1376, num_hidden_layers=6,
         num_attention_heads=8, num_key_value_heads=4, vocab_size=4000, use_cache=False)
    text('t5_encoder', 'T5Config', 'T5EncoderModel', 64, num_layers=6, d_model=512, vocab_size=4000)
    text('bert_mini_long', 'BertConfig', 'BertModel', 384, num_hidden_layers=4, hidden_size=256, num_attention_heads=4,
         intermediate_size=1024)

    @network('llama_decode_step')
    def llama_step():
        import suite_models

        model = suite_models.DecodeStep(width=768, heads=12, layers=6)
        return model, model.inputs(255)

    @network('t5_decoder')
    def t5_decoder():
        import suite_models
        import torch
        import transformers

        config = transformers.T5Config(num_layers=4, num_decoder_layers=4, vocab_size=4000, use_cache=False)
        model = transformers.T5Model(config).decoder
        return suite_models.CrossDecoder(model), (tokens(1, 16), torch.randn(1, 64, 512))

    @network('whisper_encoder')
    def whisper_encoder():
        import suite_models
        import transformers

        config = transformers.WhisperConfig(d_model=384, encoder_layers=2, decoder_layers=2, encoder_attention_heads=6,
                                            decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536)
        return suite_models.Text(transformers.WhisperModel(config).encoder), images(1, 80, 3000)

    @network('whisper_decoder_step')
    def whisper_decoder():
        import suite_models
        import torch
        import transformers

        config = transformers.WhisperConfig(d_model=384, encoder_layers=2, decoder_layers=4, encoder_attention_heads=6,
                                            decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, use_cache=False)
        return suite_models.CrossDecoder(transformers.WhisperModel(config).decoder), (tokens(1, 4), torch.randn(1, 1500, 384))

    @network('clip_vision')
    def clip_vision():
        import suite_models
        import transformers

        config = transformers.CLIPVisionConfig(hidden_size=384, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=6,
                                               patch_size=16)
        return suite_models.Text(transformers.CLIPVisionModel(config)), images(1, 3, 224, 224)

    @network('clip_text')
    def clip_text():
        import suite_models
        import transformers

        config = transformers.CLIPTextConfig(num_hidden_layers=6, vocab_size=4000)
        return suite_models.Text(transformers.CLIPTextModel(config)), (tokens(1, 77),)

    @network('segformer_b0')
    def segformer():
        import suite_models
        import transformers

        return suite_models.Text(transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig()), 'logits'), images(
            1, 3, 256, 256)

    @network('wav2vec2_small')
    def wav2vec2():
        import suite_models
        import transformers

        config = transformers.Wav2Vec2Config(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536)
        return suite_models.Text(transformers.Wav2Vec2Model(config)), images(1, 16000)

    @network('vit_sam_like')
    def sam():
        import suite_models
        import transformers

        config = transformers.SamVisionConfig(hidden_size=192, num_hidden_layers=4, num_attention_heads=3, image_size=512, mlp_dim=768,
                                              global_attn_indexes=[1, 3], window_size=14)
        return suite_models.Text(transformers.models.sam.modeling_sam.SamVisionModel(config)), images(1, 3, 512, 512)


def own_networks():
    def add(name, class_name, *shape, integers=None, **arguments):
        def make():
            import suite_models
            import torch

            inputs = list(images(*shape)) if shape else []
            for sizes, vocabulary in integers or []:
                inputs.append(torch.randint(0, vocabulary, sizes))
            return getattr(suite_models, class_name)(**arguments), tuple(inputs)
        SUITE[name] = make

    add('unet', 'UNet', 1, 3, 256, 256)
    add('espcn', 'Espcn', 1, 1, 180, 320)
    add('rrdb', 'Rrdb', 1, 3, 64, 64)
    add('crnn_lstm', 'Crnn', 1, 1, 32, 320)
    add('crnn_lstm_b8', 'Crnn', 8, 1, 32, 320)
    add('lstm_2x256', 'Recurrent', 1, 100, 128, kind='LSTM', hidden=256, layers=2)
    add('lstm_2x256_b8', 'Recurrent', 8, 100, 128, kind='LSTM', hidden=256, layers=2)
    add('bilstm_2x128', 'Recurrent', 1, 100, 80, kind='LSTM', hidden=128, layers=2, bidirectional=True)
    add('gru_3x192', 'Recurrent', 1, 120, 80, kind='GRU', hidden=192, layers=3)
    add('bigru_2x256', 'Recurrent', 1, 100, 80, kind='GRU', hidden=256, layers=2, bidirectional=True)
    add('rnn_tanh', 'Recurrent', 1, 100, 80, kind='RNN', hidden=128, layers=1)
    add('conformer', 'Conformer', 1, 200, 80)
    add('tdnn', 'Tdnn', 1, 80, 300)
    add('tcn_wavenet', 'WaveNet', 1, 64, 400)
    add('kws_dscnn', 'DsCnn', 1, 1, 49, 40)
    add('kws_dscnn_b8', 'DsCnn', 8, 1, 49, 40)
    add('dlrm', 'Dlrm', 1, 13, integers=[((1, 26), 1000)])
    add('dlrm_b8', 'Dlrm', 8, 13, integers=[((8, 26), 1000)])
    add('mlp_tabular_b8', 'Mlp', 8, 256)
    add('deform_conv', 'DeformNet', 1, 3, 96, 96)
    add('grid_sample', 'SpatialTransformer', 1, 3, 128, 128)
    add('autoencoder', 'AutoEncoder', 1, 3, 128, 128)
    add('style_transfer', 'Style', 1, 3, 160, 160)
    add('yolo_head', 'YoloLike', 1, 3, 256, 256)
    add('demucs_like', 'WaveUNet', 1, 1, 16384)


def export(name, folder):
    """Writes FOLDER/NAME.onnx."""
    import torch

    torch.manual_seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], 'big'))
    model, inputs = SUITE[name]()
    randomise_zeros(model.eval())
    path = folder / f'{name}.onnx'
    names = [f'in{i}' for i in range(len(inputs))]
    torch.backends.mha.set_fastpath_enabled(False)  # one fused operator that no exporter knows
    # The tracing exporter first, whose files most deployed models are; then the one that replaces it.
    with torch.no_grad(), open(os.devnull, 'w') as quiet, contextlib.redirect_stdout(quiet):
        try:
            torch.onnx.export(model, inputs, str(path), dynamo=False, opset_version=OPSET, input_names=names)
        except Exception:  # an operator that it does not know, of any kind
            torch.onnx.export(model, inputs, str(path), dynamo=True, input_names=names, external_data=False, verbose=False)


def randomise_zeros(model):
    """Statistics of batch norms as training would leave them, rather than zeros and ones that an exporter folds to nothing, and factors
    and matrices (classifiers of vision transformers) that do not make all before them nothing, as those that begin with zeros do."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.8, 1.2)
            if module.weight is not None and not module.weight.any():
                torch.nn.init.uniform_(module.weight, 0.2, 0.6)
    for weight in model.parameters():
        if weight.dim() > 1 and weight.numel() and not weight.any():
            torch.nn.init.trunc_normal_(weight, std=0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--half', choices=('tuning', 'report'))
    parser.add_argument('--filter', default='')
    parser.add_argument('--list', action='store_true', help='only print names and halves')
    a = parser.parse_args()
    warnings.filterwarnings('ignore')
    for add in (own_networks, torchvision_networks, timm_networks, transformer_networks):
        add()
    names = [name for name in SUITE if re.search(a.filter, name) and a.half in (None, half_of(name))]
    if a.list:
        print('\n'.join(f'{name:40} {half_of(name)}' for name in names))
        return 0
    a.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names:
        if (a.folder / f'{name}.onnx').exists():
            continue
        try:
            export(name, a.folder)
            print(f'{name} ({half_of(name)})', flush=True)
        except Exception as error:  # whatever a package or the exporter throws is the network's reason
            (a.folder / f'{name}.onnx').unlink(missing_ok=True)
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f'{name} is left out: {type(error).__name__}: {str(error).strip().splitlines()[:1]} ({where.filename}:{where.lineno})',
                  flush=True)
            failed += 1
    print(f'{len(names) - failed} of {len(names)} networks in {a.folder}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
