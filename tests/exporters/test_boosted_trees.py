"""LightGBM and XGBoost through onnxmltools, categories and missing values included."""

from typing import Any

import numpy as np
import pytest

onnxmltools = pytest.importorskip("onnxmltools")
pytest.importorskip("sklearn")

from exporters.comparing import assert_matches, run  # noqa: E402  # what it needs is there
from onnxmltools.convert.common.data_types import FloatTensorType  # noqa: E402
from sklearn import datasets  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

WIDTH = 6
INPUT = [("x", FloatTensorType([None, WIDTH]))]


def samples(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """``classes`` of 0 is for numbers to predict. A tenth of the features is missing."""
    if classes:
        x, y = datasets.make_classification(200, WIDTH, n_informative=4, n_classes=classes, random_state=0)
    else:
        x, y = datasets.make_regression(200, WIDTH, random_state=0)
        y = y / 100
    holes = np.random.default_rng(0).random(x.shape) < 0.1
    return np.where(holes, np.nan, x).astype(np.float32), y


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("boosting", ["gbdt", "dart"])
def test_lightgbm_classifiers(classes: int, boosting: str) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, y = samples(classes)
    model = lightgbm.LGBMClassifier(n_estimators=12, boosting_type=boosting, verbose=-1, random_state=0).fit(x, y)
    label, scores = run(onnxmltools.convert_lightgbm(model, initial_types=INPUT, zipmap=False), [x])
    assert_matches(label, model.predict(x))
    assert_matches(scores, model.predict_proba(x), 1e-4, 1e-5)


@pytest.mark.parametrize("objective", ["regression", "poisson", "huber", "gamma"])
def test_lightgbm_regressors(objective: str) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, y = samples(0)
    y = np.abs(y) + 0.1 if objective in ("poisson", "gamma") else y
    model = lightgbm.LGBMRegressor(n_estimators=12, objective=objective, verbose=-1).fit(x, y)
    (got,) = run(onnxmltools.convert_lightgbm(model, initial_types=INPUT), [x])
    assert_matches(got.ravel(), model.predict(x), 1e-4, 1e-5)


def test_lightgbm_categories() -> None:
    """Sets of categories in the splits."""
    lightgbm = pytest.importorskip("lightgbm")
    generator = np.random.default_rng(0)
    x = generator.integers(0, 8, (300, WIDTH)).astype(np.float32)
    y = (np.isin(x[:, 0], [1, 3, 6]) ^ (x[:, 1] > 3)).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1, min_child_samples=5)
    model.fit(x, y, categorical_feature=[0, 1])
    label, scores = run(onnxmltools.convert_lightgbm(model, initial_types=INPUT, zipmap=False), [x])
    assert_matches(label, model.predict(x))
    assert_matches(scores, model.predict_proba(x), 1e-4, 1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_xgboost_classifiers(classes: int) -> None:
    xgboost = pytest.importorskip("xgboost")
    x, y = samples(classes)
    model = xgboost.XGBClassifier(n_estimators=12, max_depth=4, random_state=0).fit(x, y)
    label, scores = run(onnxmltools.convert_xgboost(model, initial_types=INPUT), [x])
    assert_matches(label, model.predict(x))
    assert_matches(scores, model.predict_proba(x), 1e-4, 1e-5)


@pytest.mark.parametrize("objective", ["reg:squarederror", "count:poisson"])
def test_xgboost_regressors(objective: str) -> None:
    xgboost = pytest.importorskip("xgboost")
    x, y = samples(0)
    y = (y - y.min()) / (y.max() - y.min())
    model = xgboost.XGBRegressor(n_estimators=12, max_depth=4, objective=objective).fit(x, y)
    (got,) = run(onnxmltools.convert_xgboost(model, initial_types=INPUT), [x])
    assert_matches(got.ravel(), model.predict(x), 1e-4, 1e-5)


def test_a_pipeline_with_a_boosted_tree_at_its_end() -> None:
    """The converter of another package inside skl2onnx's."""
    skl2onnx = pytest.importorskip("skl2onnx")
    lightgbm = pytest.importorskip("lightgbm")
    from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
    from sklearn import impute, pipeline, preprocessing

    skl2onnx.update_registered_converter(
        lightgbm.LGBMClassifier,
        "LightGbmLGBMClassifier",
        calculate_linear_classifier_output_shapes,
        convert_lightgbm,
        options={"nocl": [True, False], "zipmap": [True, False, "columns"]},
    )
    x, y = samples(3)
    last: Any = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1)
    model = pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler(), last).fit(x, y)
    proto = skl2onnx.to_onnx(model, x[:1], target_opset={"": 18, "ai.onnx.ml": 3})
    label, scores = run(proto, [x])
    assert_matches(label, model.predict(x))
    assert_matches(scores, model.predict_proba(x), 1e-4, 1e-5)
