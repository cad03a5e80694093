"""scikit-learn's transformers and pipelines through skl2onnx: scaling, categories, missing values, text."""

from typing import Any

import numpy as np
import pytest

skl2onnx = pytest.importorskip("skl2onnx")
pytest.importorskip("sklearn")

from exporters.comparing import assert_matches, run  # noqa: E402  # what it needs is there
from skl2onnx.common.data_types import DictionaryType, FloatTensorType, Int64TensorType, StringTensorType  # noqa: E402
from sklearn import (  # noqa: E402
    cluster,
    compose,
    datasets,
    decomposition,
    feature_selection,
    impute,
    linear_model,
    pipeline,
    preprocessing,
)
from sklearn.feature_extraction import DictVectorizer, text  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

X, Y = datasets.make_classification(100, 6, n_informative=4, random_state=0)
X = X.astype(np.float32)
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.float32(np.nan), X)
WORDS = np.array([["red", "S"], ["green", "M"], ["blue", "L"], ["red", "XL"], ["ünï", ""]], object)
TEXTS = np.array(
    ["The cat sat on the mat.", "A dog: barks, loudly!", "cats and dogs; mats", "numbers 123 and more 45", "a"]
)

TRANSFORMERS = [
    preprocessing.StandardScaler(),
    preprocessing.MinMaxScaler(),
    preprocessing.RobustScaler(),
    preprocessing.MaxAbsScaler(),
    preprocessing.Normalizer("l1"),
    preprocessing.Normalizer("l2"),
    preprocessing.PolynomialFeatures(3, interaction_only=True),
    preprocessing.KBinsDiscretizer(4, encode="onehot-dense"),
    preprocessing.KBinsDiscretizer(4, encode="ordinal"),
    preprocessing.PowerTransformer(),
    preprocessing.QuantileTransformer(n_quantiles=10),
    preprocessing.Binarizer(),
    decomposition.PCA(3),
    decomposition.IncrementalPCA(2),
    decomposition.TruncatedSVD(3),
    decomposition.KernelPCA(3, kernel="rbf"),
    feature_selection.VarianceThreshold(1.5),
]


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=lambda t: str(t)[:60])
def test_transformers_of_numbers(transformer: Any) -> None:
    transformer.fit(X)
    proto = skl2onnx.to_onnx(transformer, initial_types=[("x", FloatTensorType([None, 6]))])
    (got,) = run(proto, [X])
    assert_matches(got, transformer.transform(X), 1e-3, 1e-4)


@pytest.mark.parametrize(
    "imputer",
    [impute.SimpleImputer(), impute.SimpleImputer(strategy="most_frequent"), impute.KNNImputer(n_neighbors=3)],
    ids=str,
)
def test_missing_values(imputer: Any) -> None:
    imputer.fit(HOLES)
    (got,) = run(skl2onnx.to_onnx(imputer, initial_types=[("x", FloatTensorType([None, 6]))]), [HOLES])
    assert_matches(got, imputer.transform(HOLES), 1e-4, 1e-5)


def test_clusters() -> None:
    model = cluster.KMeans(3, n_init=1, random_state=0).fit(X)
    label, distances = run(skl2onnx.to_onnx(model, initial_types=[("x", FloatTensorType([None, 6]))]), [X])
    assert_matches(label.astype(np.int64), model.predict(X))
    assert_matches(distances, model.transform(X), 1e-3, 1e-4)


ENCODERS = [
    preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
    preprocessing.OneHotEncoder(sparse_output=False, drop="first"),
    preprocessing.OrdinalEncoder(),
]


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
def test_categories_that_are_strings(encoder: Any) -> None:
    encoder.fit(WORDS)
    (got,) = run(skl2onnx.to_onnx(encoder, initial_types=[("x", StringTensorType([None, 2]))]), [WORDS])
    assert_matches(got, encoder.transform(WORDS))


def test_a_category_that_is_not_known() -> None:
    encoder = preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(WORDS)
    odd = np.array([["black", "S"]], object)
    (got,) = run(skl2onnx.to_onnx(encoder, initial_types=[("x", StringTensorType([None, 2]))]), [odd])
    assert_matches(got, encoder.transform(odd))


def test_categories_that_are_integers() -> None:
    x = np.array([[1, 5], [2, 7], [3, 5]])
    encoder = preprocessing.OneHotEncoder(sparse_output=False).fit(x)
    (got,) = run(skl2onnx.to_onnx(encoder, initial_types=[("x", Int64TensorType([None, 2]))]), [x])
    assert_matches(got, encoder.transform(x))


def test_labels() -> None:
    encoder = preprocessing.LabelEncoder().fit(WORDS[:, 0])
    proto = skl2onnx.to_onnx(encoder, initial_types=[("x", StringTensorType([None]))])
    assert_matches(run(proto, [WORDS[:, 0]])[0], encoder.transform(WORDS[:, 0]))
    binarizer = preprocessing.LabelBinarizer().fit([1, 2, 3])
    proto = skl2onnx.to_onnx(binarizer, initial_types=[("x", Int64TensorType([None, 1]))])
    assert_matches(run(proto, [np.array([[1], [3], [2]])])[0], binarizer.transform([1, 3, 2]))


VECTORIZERS = [
    text.CountVectorizer(),
    text.CountVectorizer(ngram_range=(1, 2)),
    text.CountVectorizer(binary=True),
    text.CountVectorizer(analyzer="char", ngram_range=(1, 3)),
    text.TfidfVectorizer(),
    text.TfidfVectorizer(ngram_range=(1, 2)),
    text.TfidfVectorizer(stop_words="english", lowercase=False),
    text.TfidfVectorizer(token_pattern="[a-zA-Z0-9]+", norm="l1"),
]


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=str)
def test_vectors_of_texts(vectorizer: Any) -> None:
    """skl2onnx writes onnxruntime's Tokenizer."""
    vectorizer.fit(TEXTS)
    proto = skl2onnx.to_onnx(vectorizer, initial_types=[("x", StringTensorType([None, 1]))])
    (got,) = run(proto, [TEXTS.astype(object)[:, np.newaxis]])
    assert_matches(got, vectorizer.transform(TEXTS).toarray(), 1e-5, 1e-6)


def test_a_pipeline_over_columns_of_several_kinds() -> None:
    import pandas as pd

    frame = pd.DataFrame({"size": X[:, 0], "weight": X[:, 1], "colour": np.resize(WORDS[:, 0], 100)})
    columns = compose.ColumnTransformer(
        [
            (
                "numbers",
                pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler()),
                ["size", "weight"],
            ),
            ("words", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ]
    )
    model = pipeline.make_pipeline(columns, linear_model.LogisticRegression()).fit(frame, Y)
    kinds = {"size": FloatTensorType, "weight": FloatTensorType, "colour": StringTensorType}
    proto = skl2onnx.to_onnx(
        model, initial_types=[(name, kind([None, 1])) for name, kind in kinds.items()], options={"zipmap": False}
    )
    feeds = {
        name: frame[[name]].to_numpy(object if kind is StringTensorType else np.float32) for name, kind in kinds.items()
    }
    label, scores = run(proto, feeds)
    assert_matches(label, model.predict(frame))
    assert_matches(scores, model.predict_proba(frame), 1e-4, 1e-5)


def test_maps_of_features() -> None:
    rows = [{"a": 1.0, "b": 2.0}, {"c": 3.0}]
    vectorizer = DictVectorizer(sparse=False).fit(rows)
    proto = skl2onnx.to_onnx(
        vectorizer, initial_types=[("x", DictionaryType(StringTensorType([1]), FloatTensorType([1])))], target_opset=15
    )
    for row in rows:
        (got,) = run(proto, [row])
        assert_matches(got.reshape(1, -1), vectorizer.transform([row]))
