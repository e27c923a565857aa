"""Pipelines of scikit-learn, trees of LightGBM and XGBoost, for sweep.py. Needs skl2onnx, onnxmltools, lightgbm, xgboost."""
import numpy as np


def data(count, kind):
    generator = np.random.default_rng(3)
    x = generator.normal(0, 1, (count, 6)).astype(np.float32)
    y = x[:, 0] * 2 - x[:, 1] + 0.3 * x[:, 2] * x[:, 3]
    if kind == 'regressor':
        return x, y.astype(np.float32)
    if kind == 'two':
        return x, (y > 0).astype(np.int64)
    return x, np.digitize(y, [-1, 1]).astype(np.int64)


def estimators():
    import lightgbm
    import xgboost
    from sklearn.utils import all_estimators
    skip = ('Mock', 'Text', 'Feature', 'Column', 'OneVs', 'Output', 'Stacking', 'Voting', 'Chain', 'RFE', 'SelfTraining', 'Calibrated',
            'GridSearch', 'Randomized', 'Sparse', 'Dummy', 'Patch', 'Count', 'Hashing', 'Dict', 'Label', 'Multi', 'MiniBatchDictionary',
            'FixedThreshold', 'Tuned', 'Sequential', 'SelectFromModel', 'TfidfVectorizer', 'Frozen')
    made = {}
    for kind in ('classifier', 'regressor', 'transformer', 'cluster'):
        for name, cls in all_estimators(kind):
            if any(s in name for s in skip):
                continue
            for data_kind in ({'classifier': ('two', 'three')}.get(kind, ('regressor',))):
                made[f'{name}-{data_kind}'] = (cls, data_kind, {})
    small = dict(n_estimators=12, max_depth=4)
    for data_kind in ('two', 'three'):
        made[f'lightgbm-{data_kind}'] = (lightgbm.LGBMClassifier, data_kind, dict(small, verbose=-1))
        made[f'xgboost-{data_kind}'] = (xgboost.XGBClassifier, data_kind, small)
    made['lightgbm-dart'] = (lightgbm.LGBMRegressor, 'regressor', dict(small, boosting_type='dart', verbose=-1))
    made['lightgbm'] = (lightgbm.LGBMRegressor, 'regressor', dict(small, verbose=-1))
    made['lightgbm-poisson'] = (lightgbm.LGBMRegressor, 'positive', dict(small, verbose=-1, objective='poisson'))
    made['xgboost'] = (xgboost.XGBRegressor, 'regressor', small)
    made['xgboost-linear'] = (xgboost.XGBRegressor, 'regressor', dict(booster='gblinear'))
    made['xgboost-dart'] = (xgboost.XGBRegressor, 'regressor', dict(small, booster='dart'))
    made['xgboost-logistic'] = (xgboost.XGBRegressor, 'unit', dict(small, objective='reg:logistic'))
    return made


# Estimators that take numbers from 0 on, whole ones; targets from 0 on.
COUNTS = ('MultinomialNB', 'ComplementNB', 'CategoricalNB', 'NMF', 'MiniBatchNMF', 'LatentDirichletAllocation', 'PoissonRegressor',
          'GammaRegressor', 'AdditiveChi2Sampler', 'SkewedChi2Sampler', 'OrdinalEncoder', 'OneHotEncoder', 'TargetEncoder')


def save(fitted, path):
    import onnx
    import onnxmltools
    import skl2onnx
    library = type(fitted).__module__.split('.')[0]
    if library == 'sklearn':
        from skl2onnx.common.data_types import FloatTensorType
        more = {'options': {id(fitted): {'zipmap': False}}} if hasattr(fitted, 'classes_') else {}
        model = skl2onnx.convert_sklearn(fitted, initial_types=[('x0', FloatTensorType([None, 6]))], target_opset=17, **more)
    else:
        from onnxmltools.convert.common.data_types import FloatTensorType
        convert = getattr(onnxmltools, f'convert_{library}')
        more = {'zipmap': False} if library == 'lightgbm' else {}
        model = convert(fitted, initial_types=[('x0', FloatTensorType([None, 6]))], target_opset=15, **more)
    onnx.save(model, str(path))


def models(Model):
    def make(cls, kind, options):
        def build():
            x, y = data(200, kind if kind in ('two', 'three') else 'regressor')
            if kind == 'positive':
                y = np.abs(y)
            if kind == 'unit':
                y = (y > 0).astype(np.float32)
            fitted = cls(**options)
            inputs = np.abs(np.round(x)) if cls.__name__ in COUNTS else x
            positive = any(part in cls.__name__ for part in ('Gamma', 'Poisson', 'Tweedie'))
            fitted.fit(inputs, np.abs(y) + 0.1 if positive else y)
            return lambda path: save(fitted, path), [[inputs[:40]], [inputs[50:51]]]
        return build
    return {name: Model(make(*arguments), exporters=('own',)) for name, arguments in estimators().items()}
