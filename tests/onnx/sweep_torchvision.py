"""Models of torchvision for sweep.py: classification, segmentation, video, optical flow."""
import torch
import torchvision

SMALL = {'alexnet': 96, 'convnext_tiny': 64, 'densenet121': 64, 'efficientnet_b0': 64, 'efficientnet_v2_s': 64,
         'googlenet': 64, 'inception_v3': 96, 'maxvit_t': 224, 'mnasnet0_5': 64, 'mobilenet_v2': 64,
         'mobilenet_v3_small': 64, 'mobilenet_v3_large': 64, 'regnet_x_400mf': 64, 'regnet_y_400mf': 64, 'resnet18': 64,
         'resnet50': 64, 'resnext50_32x4d': 64, 'shufflenet_v2_x0_5': 64, 'squeezenet1_1': 64, 'swin_t': 64,
         'swin_v2_t': 64, 'vgg11_bn': 64, 'vit_b_32': 224, 'wide_resnet50_2': 64}
SEGMENTATION = ['deeplabv3_mobilenet_v3_large', 'fcn_resnet50', 'lraspp_mobilenet_v3_large']
VIDEO = {'r3d_18': (4, 32, 32), 'mc3_18': (4, 32, 32), 'r2plus1d_18': (4, 32, 32), 's3d': (16, 64, 64),
         'swin3d_t': (4, 64, 64), 'mvit_v1_b': (16, 224, 224), 'mvit_v2_s': (16, 224, 224)}


class Values(torch.nn.Module):
    """A model whose dictionary of outputs becomes a tuple."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        y = self.inner(x)
        return tuple(y.values()) if isinstance(y, dict) else y


def calm(module):
    """Running statistics as of trained models, so that batch norms do something."""
    generator = torch.Generator().manual_seed(3)
    for m in module.modules():
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm) and m.running_mean is not None:
            m.running_mean.normal_(0, 0.1, generator=generator)
            m.running_var.uniform_(0.5, 1.5, generator=generator)
    return module


def models(Model):
    def make(name, *sizes, **options):
        def build():
            with torch.no_grad():
                module = calm(torchvision.models.get_model(name, weights=None, **options).eval())
            return Values(module), [[torch.randn(s)] for s in sizes]
        return build

    def flow(name):
        module = torchvision.models.get_model(name, weights=None)

        class Last(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = module

            def forward(self, a, b):
                return self.inner(a, b, 3)[-1]
        return Last(), [[torch.rand(1, 3, 128, 160), torch.rand(1, 3, 128, 160)]]

    found = {}
    for name, size in SMALL.items():
        options = {'init_weights': False} if name in ('googlenet', 'inception_v3') else {}
        found[name] = Model(make(name, (1, 3, size, size), **options))
    for name in ('resnet18', 'mobilenet_v3_small', 'swin_t', 'swin_v2_t', 'vit_b_32', 'densenet121', 'convnext_tiny'):
        size = SMALL[name]
        found[name + '-batch'] = Model(make(name, *[(n, 3, size, size) for n in (2, 1, 3)]), [{0: 'n'}])
    for name in ('resnet18', 'mobilenet_v3_small', 'regnet_y_400mf', 'swin_t', 'swin_v2_t', 'convnext_tiny'):
        sizes = [(2, 3, 64, 96), (1, 3, 64, 64), (3, 3, 128, 96)]
        found[name + '-dynamic'] = Model(make(name, *sizes), [{0: 'n', 2: 'h', 3: 'w'}])
    for name in SEGMENTATION:
        options = {'weights_backbone': None}
        found[name] = Model(make(name, (1, 3, 64, 96), **options))
        found[name + '-dynamic'] = Model(make(name, (2, 3, 64, 96), (1, 3, 96, 64), **options),
                                         [{0: 'n', 2: 'h', 3: 'w'}])
    for name, size in VIDEO.items():
        found[name] = Model(make(name, (1, 3, *size)))
    for name in ('raft_small', 'raft_large'):
        found[name] = Model(lambda name=name: flow(name), opset=0)
    return found
