"""Architectures of timm for sweep.py: the first few of each family, the smallest that its names offer."""
import re

import torch
import timm

from sweep_torchvision import calm

# Where the size of the input is fixed, or the family needs a certain one.
SIZES = (64, 96, 128, 192, 224, 256)
MORE = ['efficientnetv2_rw_t', 'resnetv2_50x1_bit', 'resnetv2_50', 'swinv2_tiny_window8_256', 'maxvit_rmlp_pico_rw_256',
        'maxvit_tiny_tf_224', 'coatnet_nano_rw_224', 'coat_tiny', 'coat_lite_tiny', 'xcit_nano_12_p16_224',
        'beit_base_patch16_224', 'beitv2_base_patch16_224', 'eva02_tiny_patch14_224', 'convnextv2_atto', 'mobilevitv2_050',
        'repvgg_a0', 'mobileone_s0', 'mobilenetv4_conv_small', 'mobilenetv4_hybrid_medium', 'tf_efficientnet_b0',
        'tf_efficientnetv2_b0', 'mixnet_s', 'lambda_resnet26t', 'halonet26t', 'poolformer_s12', 'poolformerv2_s12',
        'vit_tiny_patch16_224', 'vit_tiny_r_s16_p8_224', 'vit_relpos_small_patch16_224', 'deit_tiny_patch16_224',
        'flexivit_small', 'mixer_s32_224', 'resmlp_12_224', 'gmlp_ti16_224', 'gernet_s', 'cspresnet50', 'cspdarknet53',
        'darknet53', 'eca_nfnet_l0', 'nf_resnet26', 'nf_regnet_b0', 'regnetz_b16', 'regnety_002', 'seresnet18',
        'ecaresnet26t', 'resnetaa50', 'resnetblur50', 'gcresnet33ts', 'bat_resnext26ts', 'sehalonet33ts', 'hgnetv2_b0',
        'ghostnetv2_100', 'ghostnetv3_050', 'vit_so150m_patch16_reg4_gap_256', 'twins_svt_small', 'nest_tiny',
        'swin_s3_tiny_224', 'fastvit_t8', 'fastvit_mci0', 'mobilenetv3_small_050', 'tinynet_e', 'semnasnet_075',
        'spnasnet_100', 'test_vit', 'test_convnext', 'vit_tiny_patch16_rope_224', 'vit_small_patch16_rope_mixed_224']
# Of these also the maps of features, and the whole with any batch.
FEATURES = ['resnet18', 'mobilenetv3_small_050', 'efficientnet_lite0', 'convnext_atto', 'swin_tiny_patch4_window7_224',
            'vit_tiny_patch16_224', 'edgenext_xx_small', 'hrnet_w18_small', 'fastvit_t8', 'maxvit_rmlp_pico_rw_256',
            'efficientformerv2_s0', 'pvt_v2_b0', 'mobileone_s0', 'tiny_vit_5m_224', 'levit_128s', 'coatnet_nano_rw_224',
            'mambaout_femto', 'starnet_s1', 'repvit_m0_9', 'mobilenetv4_hybrid_medium', 'nest_tiny', 'xcit_nano_12_p16_224',
            'twins_svt_small', 'cait_xxs24_224', 'davit_tiny', 'gcvit_xxtiny', 'hiera_tiny_224', 'focalnet_tiny_srf',
            'poolformer_s12', 'inception_next_atto', 'mvitv2_tiny', 'rdnet_tiny', 'swiftformer_xs', 'shvit_s1', 'lsnet_t',
            'sequencer2d_s', 'visformer_tiny', 'eva02_tiny_patch14_224', 'crossvit_tiny_240']


class Maps(torch.nn.Module):
    """A model whose list of outputs becomes a tuple."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return tuple(self.inner(x))


def weight(name):
    """Orders names by how small they sound."""
    words = [('test_', 0), ('atto', 1), ('femto', 2), ('pico', 3), ('xxs', 3), ('nano', 4), ('050', 4), ('xtiny', 4),
             ('tiny', 5), ('_s0', 5), ('_m0', 5), ('_b0', 5), ('_t0', 5), ('_ti', 5), ('xs', 5), ('_18', 6), ('t8', 5),
             ('5m', 5), ('small', 7), ('_s', 8), ('base', 20), ('large', 40), ('huge', 60), ('giant', 80), ('_xl', 60),
             ('1b', 80), ('3b', 90)]
    return min([w for text, w in words if text in name] or [12]), len(name), name


def families():
    found = {}
    for name in timm.list_models():
        family = timm.models.model_entrypoint(name).__module__.split('.')[-1]
        found.setdefault(family, []).append(name)
    return {family: sorted(names, key=weight) for family, names in found.items()}


def make(name, batches=(1,), **options):
    """batches: of the input sets; options: of timm.create_model()."""
    def build():
        with torch.no_grad():
            for size in SIZES:
                if (fixed := re.search(r'_(\d{3})$', name)) and int(fixed[1]) > size:
                    continue
                try:
                    torch.manual_seed(1)
                    module = calm(timm.create_model(name, pretrained=False, scriptable=False, exportable=True, **options).eval())
                    x = torch.randn(1, 3, size, size)
                    module(x)
                    module = Maps(module) if options.get('features_only') else module
                    return module, [[torch.randn(n, 3, size, size)] for n in batches]
                except Exception as e:
                    error = e
            raise error
    return build


def models(Model):
    names = [names[0] for names in families().values()]
    known = set(timm.list_models())
    for name in MORE:
        if name not in names and name in known:
            names.append(name)
    found = {name: Model(make(name)) for name in names}
    for name in FEATURES:
        if name in known:
            found[f'{name}-features'] = Model(make(name, (2, 1, 3), features_only=True), [{0: 'n'}])
            found[f'{name}-batch'] = Model(make(name, (2, 1, 3)), [{0: 'n'}])
    return found
