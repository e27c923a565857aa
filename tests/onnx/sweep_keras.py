"""Models of Keras through tf2onnx, with channels last and any batch, for sweep.py. Needs tensorflow, keras, tf2onnx."""
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')

import numpy as np

NETWORKS = {'MobileNet': 64, 'MobileNetV2': 64, 'MobileNetV3Small': 64, 'MobileNetV3Large': 64, 'EfficientNetB0': 64,
            'EfficientNetV2B0': 64, 'DenseNet121': 64, 'ResNet50': 64, 'ResNet50V2': 64, 'NASNetMobile': 224,
            'Xception': 96, 'InceptionV3': 96, 'ConvNeXtTiny': 64, 'VGG16': 32, 'InceptionResNetV2': 96}


def writer(network, shape):
    def write(path):
        import tensorflow as tf
        import tf2onnx
        signature = [tf.TensorSpec(shape, tf.float32, name='x0')]
        function = tf.function(lambda x: network(x, training=False), input_signature=signature)
        tf2onnx.convert.from_function(function, input_signature=signature, opset=17, output_path=str(path))
    return write


def random_weights(network):
    generator = np.random.default_rng(1)
    for w in network.weights:
        value = np.asarray(w.numpy(), np.float32)
        if 'variance' in w.path:
            w.assign(generator.uniform(0.5, 1.5, value.shape))
        elif 'mean' in w.path or 'beta' in w.path or 'bias' in w.path:
            w.assign(generator.normal(0, 0.1, value.shape))
    return network


def parts():
    import keras
    from keras import layers as L

    def after(*layers, size=(16, 16, 8)):
        """The layers one after the other; the model and the shape of an item."""
        x = y = keras.Input(size)
        for layer in layers:
            y = layer(y)
        return keras.Model(x, y), size

    def attention():
        x = keras.Input((None, 32))
        y = L.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True)
        y = L.LayerNormalization()(L.Add()([x, y]))
        return keras.Model(x, L.Dense(5, activation='softmax')(L.GlobalAveragePooling1D()(y))), (None, 32)

    def additive():
        x = keras.Input((None, 16))
        return keras.Model(x, L.Concatenate()([L.AdditiveAttention()([x, x]), L.Attention(use_scale=True)([x, x])])), (None, 16)

    def unet():
        x = keras.Input((32, 48, 3))
        a = L.Conv2D(8, 3, padding='same', activation='relu')(x)
        b = L.Conv2D(16, 3, padding='same', activation='swish')(L.MaxPooling2D()(a))
        c = L.Conv2DTranspose(8, 3, 2, padding='same')(b)
        d = L.UpSampling2D(interpolation='bilinear')(b)
        return keras.Model(x, L.Conv2D(2, 1, activation='sigmoid')(L.Concatenate()([a, c, d]))), (32, 48, 3)

    def masked():
        x = keras.Input((None, 8))
        return keras.Model(x, L.LSTM(12, return_sequences=True)(L.Masking(0.)(x))), (None, 8)

    found = {
        'lstm': lambda: after(L.LSTM(12, return_sequences=True), L.LSTM(6), L.Dense(3), size=(None, 8)),
        'gru': lambda: after(L.GRU(12, return_sequences=True), L.GRU(6, reset_after=False), size=(None, 8)),
        'simple_rnn': lambda: after(L.SimpleRNN(12, return_sequences=True, go_backwards=True), size=(None, 8)),
        'bidirectional': lambda: after(L.Bidirectional(L.LSTM(12, return_sequences=True)), L.Bidirectional(L.GRU(6)), size=(None, 8)),
        'masked-lstm': masked,
        'conv_lstm': lambda: after(L.ConvLSTM2D(4, 3, padding='same', return_sequences=True), size=(5, 8, 8, 2)),
        'time_distributed': lambda: after(L.TimeDistributed(L.Conv2D(4, 3)), L.TimeDistributed(L.Flatten()), L.LSTM(4), size=(5, 8, 8, 2)),
        'separable': lambda: after(L.SeparableConv2D(12, 3, 2, padding='same'), L.DepthwiseConv2D(3, 2, depth_multiplier=2), L.PReLU(shared_axes=[1, 2])),
        'conv1d': lambda: after(L.Conv1D(12, 3, padding='causal', dilation_rate=2), L.LeakyReLU(), L.SeparableConv1D(8, 3), L.MaxPooling1D(2, padding='same'), size=(None, 8)),
        'conv3d': lambda: after(L.Conv3D(6, 3, padding='same', strides=2), L.BatchNormalization(), L.AveragePooling3D(2, padding='same'), size=(9, 9, 9, 4)),
        'transposed': lambda: after(L.Conv2DTranspose(6, 4, 2, padding='same'), L.Conv2DTranspose(4, 3, 3, padding='valid')),
        'norms': lambda: after(L.GroupNormalization(4), L.LayerNormalization(axis=[1, 2, 3]), L.UnitNormalization(), L.BatchNormalization(axis=1)),
        'pools': lambda: after(L.AveragePooling2D(3, 2, padding='same'), L.MaxPooling2D(3, 2, padding='same'), L.GlobalMaxPooling2D(keepdims=True)),
        'resize': lambda: after(L.Resizing(23, 9), L.CenterCrop(8, 8), L.Rescaling(2., 1.), L.UpSampling2D(3), L.Cropping2D(((1, 2), (3, 0))), L.ZeroPadding2D(((1, 2), (3, 0)))),
        'resize-cubic': lambda: after(L.Resizing(23, 9, interpolation='bicubic'), L.Resizing(30, 17, interpolation='nearest')),
        'permute': lambda: after(L.Permute((3, 1, 2)), L.Reshape((8, -1)), L.Dense(5, activation='softplus'), L.Softmax(axis=1)),
        'activations': lambda: after(L.Dense(8, activation='elu'), L.Dense(8, activation='selu'), L.Dense(8, activation='softsign'), L.Dense(8, activation='hard_sigmoid'), L.Dense(8, activation='mish'), L.Dense(8, activation='exponential'), L.Dense(8, activation='log_softmax')),
        'einsum_dense': lambda: after(L.EinsumDense('abcd,de->abce', output_shape=(None, None, 6), bias_axes='e')),
        'attention': attention,
        'attention-additive': additive,
        'unet': unet,
    }
    return found


def fill(shape, n, length):
    return (n, *[length if s is None else s for s in shape])


def models(Model):
    import keras
    found = {}

    def network(name, size):
        def make():
            keras.utils.set_random_seed(1)
            shape = (size, size, 3)
            net = random_weights(getattr(keras.applications, name)(weights=None, input_shape=shape, classes=10))
            scale = 255 if 'V3' in name and 'Mobile' in name or 'Efficient' in name or 'ConvNeXt' in name else 1
            x = np.random.default_rng(2).random((2, *shape)).astype(np.float32) * scale
            return writer(net, (None, *shape)), [[x], [x[:1]]]
        return make

    def part(build):
        def make():
            keras.utils.set_random_seed(1)
            net, shape = build()
            generator = np.random.default_rng(2)
            sets = [[generator.normal(0, 1, fill(shape, n, t)).astype(np.float32)] for n, t in ((2, 12), (1, 20))]
            return writer(random_weights(net), (None, *shape)), sets
        return make

    for name, size in NETWORKS.items():
        found[name] = Model(network(name, size), exporters=('own',))
    for name, build in parts().items():
        found[name] = Model(part(build), exporters=('own',))
    return found
