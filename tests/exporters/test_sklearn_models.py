"""scikit-learn's models through skl2onnx: trees, ensembles, support vectors, neighbours, Gaussian processes."""

from typing import Any

import numpy as np
import pytest

skl2onnx = pytest.importorskip("skl2onnx")
pytest.importorskip("sklearn")

from exporters.comparing import assert_matches, run  # noqa: E402  # what it needs is there
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType  # noqa: E402
from sklearn import (  # noqa: E402
    calibration,
    datasets,
    discriminant_analysis,
    ensemble,
    gaussian_process,
    linear_model,
    multiclass,
    naive_bayes,
    neighbors,
    neural_network,
    svm,
    tree,
)
from sklearn.gaussian_process import kernels  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def classes(dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    x, y = datasets.make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)
    return x.astype(dtype), y


def numbers(dtype: type = np.float32, count: int = 200, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    x, y = datasets.make_regression(count, width, random_state=0)
    return x.astype(dtype), y / 100


def converted(model: Any, x: np.ndarray, **options: Any) -> Any:
    kind = DoubleTensorType if x.dtype == np.float64 else FloatTensorType
    return skl2onnx.to_onnx(model, initial_types=[("x", kind([None, x.shape[1]]))], **options)


CLASSIFIERS = [
    tree.DecisionTreeClassifier(random_state=0),
    ensemble.RandomForestClassifier(20, random_state=0),
    ensemble.ExtraTreesClassifier(10, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0),
    ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    ensemble.BaggingClassifier(n_estimators=5, random_state=0),
    ensemble.StackingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier())]),
    linear_model.LogisticRegression(),
    linear_model.RidgeClassifier(),
    linear_model.SGDClassifier(loss="log_loss", random_state=0),
    linear_model.Perceptron(),
    neighbors.KNeighborsClassifier(),
    neighbors.KNeighborsClassifier(metric="manhattan"),
    naive_bayes.GaussianNB(),
    naive_bayes.BernoulliNB(),
    neural_network.MLPClassifier(max_iter=50, random_state=0),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
    calibration.CalibratedClassifierCV(svm.LinearSVC(random_state=0)),
    multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
    svm.LinearSVC(),
    *(svm.SVC(kernel=kernel, probability=True, random_state=0) for kernel in ("linear", "poly", "rbf", "sigmoid")),
    *(svm.SVC(kernel=kernel, decision_function_shape=shape) for kernel in ("rbf", "poly") for shape in ("ovr", "ovo")),
    svm.NuSVC(nu=0.2, probability=True, random_state=0),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: str(model)[:60])
def test_classifiers_give_labels_and_scores(model: Any) -> None:
    x, y = classes()
    model.fit(x, y)
    scores = model.predict_proba(x) if hasattr(model, "predict_proba") else model.decision_function(x)
    label, got = run(converted(model, x), [x])
    assert_matches(label.ravel(), model.predict(x))
    assert_matches(got, scores, 1e-3, 1e-4)


@pytest.mark.parametrize("zipmap", [True, False, "columns"])
def test_labels_can_be_strings_and_scores_maps_or_columns(zipmap: bool | str) -> None:
    x, y = classes()
    names = np.array(["ham", "spam", "ünï"])
    model = ensemble.RandomForestClassifier(5, random_state=0).fit(x, names[y])
    label, *scores = run(converted(model, x, options={"zipmap": zipmap}), [x])
    assert_matches(label, model.predict(x).astype(object))
    if zipmap == "columns":
        scores = [np.stack(scores, 1)]
    elif zipmap:
        assert list(scores[0][0]) == names.tolist()
    assert_matches(scores[0], model.predict_proba(x), 1e-5, 1e-6)


REGRESSORS = [
    tree.DecisionTreeRegressor(random_state=0),
    ensemble.RandomForestRegressor(10, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0),
    ensemble.ExtraTreesRegressor(5, random_state=0),
    linear_model.LinearRegression(),
    linear_model.Lasso(),
    linear_model.BayesianRidge(),
    linear_model.TweedieRegressor(),
    neighbors.KNeighborsRegressor(),
    neural_network.MLPRegressor(max_iter=50, random_state=0),
    *(svm.SVR(kernel=kernel) for kernel in ("linear", "poly", "rbf", "sigmoid")),
    svm.NuSVR(),
]


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: str(model)[:60])
def test_regressors_give_numbers(model: Any) -> None:
    x, y = numbers()
    model.fit(x, y)
    (got,) = run(converted(model, x), [x])
    assert_matches(got, model.predict(x)[:, np.newaxis], 1e-3, 1e-4)


def test_several_numbers_at_once() -> None:
    x, y = datasets.make_regression(100, 6, n_targets=3, random_state=0)
    x = x.astype(np.float32)
    model = ensemble.RandomForestRegressor(5, random_state=0).fit(x, y / 100)
    (got,) = run(converted(model, x), [x])
    assert_matches(got, model.predict(x), 1e-4, 1e-4)


@pytest.mark.parametrize(
    "model", [svm.OneClassSVM(), ensemble.IsolationForest(n_estimators=5, random_state=0)], ids=str
)
def test_outliers(model: Any) -> None:
    x, _ = classes()
    model.fit(x)
    label, score = run(converted(model, x, target_opset={"": 18, "ai.onnx.ml": 3}), [x])
    assert_matches(label.ravel(), model.predict(x))
    assert_matches(score.ravel(), model.decision_function(x), 1e-3, 1e-4)


KERNELS = [
    kernels.RBF(),
    kernels.ConstantKernel(2.0) * kernels.RBF([1.0, 2.0, 3.0]),
    kernels.DotProduct() + kernels.WhiteKernel(),
    kernels.ExpSineSquared(periodicity=30.0) + kernels.WhiteKernel(10.0),
    kernels.RationalQuadratic(),
    kernels.Matern(nu=1.5),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gaussian_processes_in_double_precision(kernel: Any) -> None:
    """Distances of all pairs, by Scan."""
    x, y = numbers(np.float64, 20, 3)
    model = gaussian_process.GaussianProcessRegressor(kernel, alpha=1e-2, optimizer=None).fit(x, y)
    proto = converted(model, x, options={id(model): {"return_std": True}})
    got, deviation = run(proto, [x])
    wanted, std = model.predict(x, return_std=True)
    assert got.dtype == np.float64
    assert_matches(got.ravel(), wanted, 1e-7, 1e-9)
    assert_matches(deviation.ravel(), std, 1e-5, 1e-7)


def test_neighbours_in_double_precision() -> None:
    x, y = numbers(np.float64)
    model = neighbors.KNeighborsRegressor(3).fit(x[:100], y[:100])
    (got,) = run(converted(model, x), [x[100:]])
    assert_matches(got.ravel(), model.predict(x[100:]), 1e-7, 1e-9)


@pytest.mark.parametrize(
    "model", [neighbors.KNeighborsRegressor(3), gaussian_process.GaussianProcessRegressor()], ids=str
)
def test_distances_by_an_operator_of_onnxruntime(model: Any) -> None:
    x, y = numbers(np.float64, 40, 3)
    model.fit(x[:20], y[:20])
    proto = converted(model, x, options={id(model): {"optim": "cdist"}})
    assert "CDist" in {node.op_type for node in proto.graph.node}
    (got,) = run(proto, [x[20:]])
    assert_matches(got.ravel(), model.predict(x[20:]), 1e-7, 1e-9)


@pytest.mark.parametrize("opset", [9, 10, 11, 12, 13, 15, 18, 20, 21])
def test_models_at_every_opset(opset: int) -> None:
    x, y = classes()
    parts = [
        ("forest", ensemble.RandomForestClassifier(5, random_state=0)),
        ("vectors", svm.SVC(probability=True, random_state=0)),
        ("neighbours", neighbors.KNeighborsClassifier()),
    ]
    model = ensemble.VotingClassifier(parts, voting="soft", flatten_transform=False).fit(x, y)
    label, scores = run(converted(model, x, target_opset={"": opset, "ai.onnx.ml": 1 if opset < 10 else 3}), [x])
    assert_matches(label.ravel(), model.predict(x))
    assert_matches(scores, model.predict_proba(x), 1e-3, 1e-4)
