"""An ONNX graph is a model as a network of standard operators, which programs in many languages can run.

Each rule is a chain-shaped tree of a `TreeEnsemble`: a node per condition, one branch of which leads on to the next
condition and the other to a leaf that adds nothing. A leaf can add to one number only. So the tree of a rule that
scores one label adds to it directly; those of the other rules add 1 to a number of their own, which says that they
cover the example, and a product with the matrix of their heads follows. All numbers are of double precision.
"""

import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pyboomer
from pyboomer.arrays import Array
from pyboomer.losses import example_wise_logistic
from pyboomer.losses.joint import LEAST
from pyboomer.losses.loss import KnownVectors
from pyboomer.losses.squared import CLOSEST, example_wise_squared_hinge
from pyboomer.predicting.calibration import Curve
from pyboomer.predicting.decision import Decision
from pyboomer.predicting.decoding import find_cuts
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import EQUAL as FIRST_NOMINAL
from pyboomer.rules.precision import CERTAIN, TIE

try:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
except ImportError as error:
    raise ImportError("an ONNX graph needs the package onnx: pip install 'pyboomer[onnx]'") from error

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator


ML = "ai.onnx.ml"
OPSETS = {"": 21, ML: 5}  # the first with TreeEnsemble; ONNX Runtime can run them since version 1.21
IR_VERSION = 10  # that of these opsets: a newer one would lock out runtimes that know all the operators
OUTPUTS = ("scores", "labels", "probabilities")
INNER = "pyboomer/"  # begins the names of all other values in a graph
AT_MOST, EQUAL = 0, 4  # codes of the comparisons that the nodes of a TreeEnsemble make
LARGEST = float(np.finfo(np.float64).max / 2)  # scores are clipped here, so that their differences are finite
TINY = 1e-280  # sums of exponentials below this are computed again from logarithms


class Nodes(NamedTuple):
    """The nodes of a graph, in the order in which they are computed, and how the names of what they compute begin."""

    prefix: str
    nodes: list[NodeProto]


def build_graph(model: "RuleEstimator") -> ModelProto:
    """Build the ONNX graph of a fitted model.

    Its input is "X", double, of shape (N, L): nominal features hold their categories, NaN is a missing value. If some
    features have text as categories, there is an input of shape (N, 1) for each feature instead, which has its name;
    those of features with text take strings. The string for a missing value is empty unless that is a category; the
    metadata tell ("missing_text").

    Its outputs are "scores", double, of shape (N, K); "labels", int64, of shape (N, K), or the classes, of shape (N,),
    if y was one column; and "probabilities", double, as by `predict_proba`. A regressor has scores only. What depends
    on functions of a user's own loss is left out, with a warning.
    """
    rules, decision = model.rules_, model.get_fitted().decision
    text = set(rules.schema.with_text)
    nodes = Nodes(INNER, [])
    inputs, table = _add_inputs(nodes, rules, text)
    scores = _add_scores(nodes, rules, text, table)
    outputs = [_add_output(nodes, "scores", scores, TensorProto.DOUBLE, ["N", len(rules.label_names)])]
    if decision.rule != "numbers":
        log_odds = "" if decision.odds == "own" else _add_log_odds(nodes, decision, scores)
        if "labels" not in decision.out_of_reach:
            outputs.append(_add_labels(nodes, decision, scores, log_odds, len(rules.label_names)))
        if "probabilities" not in decision.out_of_reach:
            outputs.append(_add_probabilities(nodes, decision, log_odds or scores, len(rules.label_names)))
    if decision.out_of_reach:
        warnings.warn(
            f"the ONNX graph has no {' and no '.join(decision.out_of_reach)}: they depend on functions of the loss "
            f"{decision.loss.name!r}, which are your own code",
            UserWarning,
            stacklevel=3,
        )
    graph = helper.make_graph(nodes.nodes, "pyboomer", inputs, outputs)
    result = helper.make_model(
        graph,
        producer_name="pyboomer",
        producer_version=pyboomer.__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS.items()],
        doc_string=f"{type(model).__name__} with {len(rules)} rules",
    )
    facts: dict[str, Any] = {
        "pyboomer": pyboomer.__version__,
        "loss": decision.loss.name,
        "decoding": "scores" if decision.rule == "numbers" else decision.rule,
        "feature_names": rules.feature_names,
        "label_names": rules.label_names,
        "categories": {rules.feature_names[f]: values for f, values in rules.categories.items()},
        "missing_text": _find_missing_text(rules),
    }
    for name, fact in facts.items():
        result.metadata_props.add(key=name, value=_encodable(fact) if isinstance(fact, str) else json.dumps(fact))
    return result


def _add(nodes: Nodes, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
    """Append a node and return the name of what it computes."""
    name = name or f"{nodes.prefix}{operator}_{len(nodes.nodes)}"
    nodes.nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))
    return name


def _add_constant(nodes: Nodes, value: Any) -> str:
    return _add(nodes, "Constant", value=numpy_helper.from_array(np.asarray(value)))


def _add_integer(nodes: Nodes, value: int) -> str:
    """An axis or a size."""
    return _add_constant(nodes, np.array([value], dtype=np.int64))


def _add_output(nodes: Nodes, name: str, value: str, kind: int, shape: list[str | int]) -> ValueInfoProto:
    _add(nodes, "Identity", value, name=name)
    return helper.make_tensor_value_info(name, kind, shape)


# --- Features ---------------------------------------------------------------------------------------------------------


def _add_inputs(nodes: Nodes, rules: RuleEnsemble, text: set[int]) -> tuple[list[ValueInfoProto], str]:
    """The inputs, and the name of the table of all features, in which categories that are text have become codes."""
    if not text:
        return [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["N", len(rules.feature_names)])], "X"
    inputs, columns = [], []
    for f, name in enumerate(_name_inputs(rules.feature_names)):
        kind = TensorProto.STRING if f in text else TensorProto.DOUBLE
        inputs.append(helper.make_tensor_value_info(name, kind, ["N", 1]))
        columns.append(_add_codes(nodes, rules, f, name) if f in text else name)
    return inputs, _add(nodes, "Concat", *columns, axis=1)


def _name_inputs(features: tuple[str, ...]) -> list[str]:
    """Names of features as names in a graph: distinct, not empty, and not taken."""
    names: dict[str, None] = dict.fromkeys(("", *OUTPUTS))
    seen: dict[str, int] = {}
    for feature in features:
        seen[feature] = seen.get(feature, 0) + 1
        name = _encodable(feature) if seen[feature] == 1 else f"{_encodable(feature)}_{seen[feature]}"
        while name in names or name.startswith(INNER):
            name = f"_{name}"
        names[name] = None
    return list(names)[1 + len(OUTPUTS) :]


def _add_codes(nodes: Nodes, rules: RuleEnsemble, feature: int, name: str) -> str:
    """Turn text into codes of categories: NaN if it is missing, one more than all others if it was never seen.

    Of an ordinal feature, what is no level is missing.
    """
    categories = [_encodable(str(category)) for category in rules.categories[feature]]
    unseen = np.nan if rules.schema.is_ordinal(feature) else float(len(categories))
    return _add(
        nodes,
        "LabelEncoder",
        name,
        domain=ML,
        keys_tensor=numpy_helper.from_array(np.array([*categories, _find_missing_text(rules)], dtype=object)),
        values_tensor=numpy_helper.from_array(np.array([*range(len(categories)), np.nan])),
        default_tensor=numpy_helper.from_array(np.array([unseen])),
    )


def _find_missing_text(rules: RuleEnsemble) -> str:
    """What stands for a missing value among strings, which know no NaN: a text that is no category."""
    categories = {value for values in rules.categories.values() for value in values}
    missing = ""
    while missing in categories:
        missing = f"<{missing}>" if missing else "<missing>"
    return missing


def _encodable(text: str) -> str:
    """A text that UTF-8 can encode: halves of surrogate pairs, which no other program will send, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


# --- Scores -----------------------------------------------------------------------------------------------------------


def _add_scores(nodes: Nodes, rules: RuleEnsemble, text: set[int], table: str) -> str:
    """The sums of the heads of all rules that cover an example (Eq. 2)."""
    n_labels = len(rules.label_names)
    has_body = np.diff(rules.condition_offsets) > 0
    rule = np.repeat(np.arange(len(rules)), np.diff(rules.head_offsets))
    n_scored = np.bincount(rule[rules.head_scores != 0], minlength=len(rules))
    always, single, several = rules[~has_body], rules[has_body & (n_scored == 1)], rules[has_body & (n_scored > 1)]

    terms = []
    if len(single):
        scored = single.head_scores != 0
        labels, scores = single.head_labels[scored], single.head_scores[scored]
        terms.append(_add_trees(nodes, single, text, table, labels, scores, n_labels))
    if len(several):
        n = len(several)
        covered = _add_trees(nodes, several, text, table, np.arange(n), np.ones(n), n)
        terms.append(_add(nodes, "MatMul", covered, _add_constant(nodes, several.head_matrix())))
    total = np.zeros(n_labels)
    np.add.at(total, always.head_labels, always.head_scores)
    result = _add_constant(nodes, total[None, :])
    for term in terms:
        result = _add(nodes, "Add", result, term)
    if not terms:
        n_examples = _add(nodes, "Shape", table, start=0, end=1)
        result = _add(nodes, "Expand", result, _add(nodes, "Concat", n_examples, _add_integer(nodes, 1), axis=0))
    return result


def _add_trees(
    nodes: Nodes,
    rules: RuleEnsemble,
    text: set[int],
    table: str,
    targets: NDArray[Any],
    weights: Array,
    n_targets: int,
) -> str:
    """A tree for each rule, all of which have conditions: it adds a weight to a target if the rule covers the example.

    The tests are only `<=` and `==`. For `>` and `!=` the branches change places, and a missing value, which meets no
    condition, is told to take the true branch. (ONNX Runtime holds NaN != 3 to be true, whatever it is told.)

    Leaf n is where the chain ends at node n; the leaves of the covered examples come behind them. So no root has a node
    and a leaf of the same number as children, which ONNX Runtime up to 1.23 takes for a tree without nodes.
    """
    n_nodes, n_trees = len(rules.condition_features), len(rules)
    node = np.arange(n_nodes)
    is_last = np.zeros(n_nodes, dtype=bool)
    is_last[rules.condition_offsets[1:] - 1] = True
    onward = node + 1
    onward[is_last] = n_nodes + np.arange(n_trees)  # a leaf
    swapped = rules.condition_operators % 2 == 1
    nominal = rules.condition_operators >= FIRST_NOMINAL
    tree = np.repeat(np.arange(n_trees), np.diff(rules.condition_offsets))
    integers: dict[str, NDArray[Any]] = {
        "tree_roots": rules.condition_offsets[:-1],
        "nodes_featureids": rules.condition_features,
        "nodes_truenodeids": np.where(swapped, node, onward),
        "nodes_trueleafs": swapped | is_last,
        "nodes_falsenodeids": np.where(swapped, onward, node),
        "nodes_falseleafs": ~swapped | is_last,
        "nodes_missing_value_tracks_true": swapped,
        "leaf_targetids": np.concatenate([targets[tree], targets]),
    }
    tensors: dict[str, NDArray[Any]] = {
        "nodes_modes": np.where(nominal, EQUAL, AT_MOST).astype(np.uint8),
        "nodes_splits": _list_splits(rules, text),
        "leaf_weights": np.concatenate([np.zeros(n_nodes), weights]),
    }
    attributes: dict[str, Any] = {name: array.astype(np.int64).tolist() for name, array in integers.items()}
    attributes |= {name: numpy_helper.from_array(array) for name, array in tensors.items()}
    return _add(nodes, "TreeEnsemble", table, domain=ML, n_targets=n_targets, **attributes)


def _list_splits(rules: RuleEnsemble, text: set[int]) -> Array:
    """What each condition compares with: a threshold, a category that is a number, or the code of one that is text."""
    splits = rules.condition_values.copy()
    for c in np.flatnonzero(rules.condition_operators >= FIRST_NOMINAL):
        feature = int(rules.condition_features[c])
        if feature not in text:
            splits[c] = float(rules.categories[feature][int(splits[c])])
    return splits


# --- Labels and probabilities -----------------------------------------------------------------------------------------


def _add_log_odds(nodes: Nodes, decision: Decision, scores: str) -> str:
    """What scores mean as probabilities of labels: by the loss, and by calibration."""
    log_odds = scores
    # classes have scores of their own, of which probabilities follow directly, unless each is calibrated
    if decision.odds == "vectors" and (decision.classes is None or decision.calibration is not None):
        log_odds = _add_odds_of_vectors(nodes, decision.loss.known, scores)
    if decision.odds == "means":  # of labels that are -1 and +1
        mean, one = _clip(nodes, scores, CLOSEST), _add_constant(nodes, 1.0)
        log_odds = _add(nodes, "Log", _add(nodes, "Div", _add(nodes, "Add", one, mean), _add(nodes, "Sub", one, mean)))
    if decision.calibration is not None:
        p = _interpolate(nodes, decision.calibration.labels, _clip(nodes, log_odds, LARGEST))
        log_odds = _add(nodes, "Log", _add(nodes, "Div", p, _add(nodes, "Sub", _add_constant(nodes, 1.0), p)))
    return log_odds


def _add_odds_of_vectors(nodes: Nodes, known: KnownVectors | None, scores: str) -> str:
    """The log-odds of labels that follow from the probabilities of label vectors."""
    assert known is not None
    vectors = _add(nodes, "Cast", _add_constant(nodes, known.vectors), to=TensorProto.DOUBLE)
    joint = _add(nodes, "Softmax", _score_vectors(nodes, scores, vectors, known), axis=1)
    others, least = _add(nodes, "Sub", _add_constant(nodes, 1.0), vectors), _add_constant(nodes, LEAST)
    sums = (_add(nodes, "MatMul", joint, chosen) for chosen in (vectors, others))
    return _add(nodes, "Sub", *(_add(nodes, "Log", _add(nodes, "Max", total, least)) for total in sums))


def _interpolate(nodes: Nodes, curves: Sequence[Curve], values: str) -> str:
    """Apply a curve to each column, or one curve to all.

    The points of each curve stand in a row of a table, behind a place for what lies before the first. A bisection, in
    as many steps as it takes for the longest curve, finds the place of the last point that is not beyond a value.
    """
    size = 2 ** max(len(curve.x) for curve in curves).bit_length()
    limits, start, height, slope = np.full((len(curves), size), np.inf), *np.zeros((3, len(curves), size))
    for c, curve in enumerate(curves):
        x, y, places = np.array(curve.x), np.array(curve.y), slice(1, 1 + len(curve.x))
        limits[c, places] = start[c, places] = x
        height[c, places], height[c, 0] = y, y[0]
        gaps = np.where(np.diff(x) > 0, np.diff(x), np.inf)  # between equal points lies no value
        with np.errstate(over="ignore"):  # of the narrowest gaps, in which no value lies either
            slope[c, 1 : len(x)] = np.nan_to_num(np.diff(y) / gaps, posinf=0.0)
    place = _add_constant(nodes, np.arange(len(curves)) * size)
    points = _add_constant(nodes, limits.ravel())
    step = size // 2
    while step:
        ahead = _add(nodes, "Add", place, _add_integer(nodes, step))
        reached = _add(nodes, "LessOrEqual", _add(nodes, "Gather", points, ahead), values)
        place, step = _add(nodes, "Where", reached, ahead, place), step // 2
    begin, base, rise = (_add(nodes, "Gather", _add_constant(nodes, t.ravel()), place) for t in (start, height, slope))
    return _add(nodes, "Add", _add(nodes, "Mul", rise, _add(nodes, "Sub", values, begin)), base)


def _add_labels(nodes: Nodes, decision: Decision, scores: str, log_odds: str, n_labels: int) -> ValueInfoProto:
    if decision.classes is not None:
        return _add_classes(nodes, decision.classes, scores)
    labels = _add(nodes, "Cast", _decode(nodes, decision, scores, log_odds, n_labels), to=TensorProto.INT64)
    return _add_output(nodes, "labels", labels, TensorProto.INT64, ["N", n_labels])


def _decode(nodes: Nodes, decision: Decision, scores: str, log_odds: str, n_labels: int) -> str:
    if decision.rule == "sign" or (decision.rule == "odds" and decision.have_sign_of_scores):
        return _add(nodes, "Greater", scores, _add_constant(nodes, 0.0))  # Eq. 18
    if decision.rule == "odds":
        return _add(nodes, "Greater", log_odds, _add_constant(nodes, 0.0))
    if decision.thresholds is not None:
        return _add(nodes, "Greater", log_odds, _add_constant(nodes, find_cuts(decision.thresholds)))
    if decision.rule == "rank":
        return _decode_by_rank(nodes, log_odds, min(decision.count, n_labels))
    if decision.rule == "f1":
        return _decode_by_f1(nodes, decision, scores if decision.odds == "vectors" else log_odds, n_labels)
    vectors = _add(nodes, "Cast", _add_constant(nodes, decision.vectors), to=TensorProto.DOUBLE)
    if decision.rule == "loss" and decision.loss == example_wise_logistic:
        return _decode_by_loss(nodes, scores, vectors)
    if decision.rule == "loss":
        return _decode_by_squares(nodes, scores, vectors, hinge=decision.loss == example_wise_squared_hinge)
    if decision.rule == "hamming":
        return _decode_by_marginals(nodes, log_odds, vectors)
    terms = scores if decision.odds == "vectors" else log_odds
    return _choose_vectors(nodes, _score_vectors(nodes, terms, vectors, decision.loss.known), vectors)


def _add_classes(nodes: Nodes, classes: NDArray[Any], scores: str) -> ValueInfoProto:
    """The class of the largest score; a single score is that of the second of two."""
    if len(classes) > 2:
        index = _add(nodes, "ArgMax", scores, axis=1, keepdims=0)
    else:
        score = _add(nodes, "Squeeze", scores, _add_integer(nodes, 1))
        index = _add(nodes, "Cast", _add(nodes, "Greater", score, _add_constant(nodes, 0.0)), to=TensorProto.INT64)
    if classes.dtype.kind not in "buif":
        classes = np.array([_encodable(name) for name in classes.tolist()], dtype=object)
    elif classes.dtype.kind in "iu" and np.can_cast(classes.dtype, np.int64):
        classes = classes.astype(np.int64)
    chosen = _add(nodes, "Gather", _add_constant(nodes, classes), index)
    return _add_output(nodes, "labels", chosen, numpy_helper.from_array(classes).data_type, ["N"])


def _add_probabilities(nodes: Nodes, decision: Decision, log_odds: str, n_labels: int) -> ValueInfoProto:
    if decision.classes is None:
        probabilities = _add(nodes, "Sigmoid", log_odds)
    elif len(decision.classes) == 2 and not decision.is_settled:
        n_labels = 2
        against, for_it = _add(nodes, "Sigmoid", _add(nodes, "Neg", log_odds)), _add(nodes, "Sigmoid", log_odds)
        probabilities = _add(nodes, "Concat", against, for_it, axis=1)
    else:  # a single class has probability 1
        probabilities = _add(nodes, "Softmax", _clip(nodes, log_odds, CERTAIN), axis=1)
    return _add_output(nodes, "probabilities", probabilities, TensorProto.DOUBLE, ["N", n_labels])


def _decode_by_loss(nodes: Nodes, scores: str, vectors: str) -> str:
    """The known label vector of least loss (Eq. 19); of equals, the first."""
    sums = _sum_exponentials(nodes, _clip(nodes, scores, LARGEST), vectors)
    smallest = _reduce(nodes, "ReduceMin", sums)
    # not a product with 1 + TIE: ONNX Runtime finds that so close to 1 that it leaves it out
    limit = _add(nodes, "Add", smallest, _add(nodes, "Mul", smallest, _add_constant(nodes, TIE)))
    is_best = _add(nodes, "Cast", _add(nodes, "LessOrEqual", sums, limit), to=TensorProto.INT32)
    return _choose_vectors(nodes, is_best, vectors)


def _decode_by_squares(nodes: Nodes, scores: str, vectors: str, hinge: bool) -> str:
    """The known label vector of least root of the sum of squared residuals; of equals, the first."""
    one = _add_constant(nodes, 1.0)
    squares = []
    for operator, chosen in ("Sub", vectors), ("Add", _add(nodes, "Sub", one, vectors)):
        residuals = _add(nodes, operator, one, scores)  # of labels that are relevant, then of the others
        residuals = _add(nodes, "Relu", residuals) if hinge else residuals
        squared = _add(nodes, "Mul", residuals, residuals)
        squares.append(_add(nodes, "MatMul", squared, _add(nodes, "Transpose", chosen)))
    losses = _add(nodes, "Sqrt", _add(nodes, "Add", *squares))
    smallest = _reduce(nodes, "ReduceMin", losses)
    slack = _add(nodes, "Mul", _add(nodes, "Min", smallest, one), _add_constant(nodes, TIE))
    is_best = _add(nodes, "LessOrEqual", losses, _add(nodes, "Add", smallest, slack))
    return _choose_vectors(nodes, _add(nodes, "Cast", is_best, to=TensorProto.INT32), vectors)


def _decode_by_marginals(nodes: Nodes, log_odds: str, vectors: str) -> str:
    """The labels more probable than not: the mean of what the known label vectors and each label alone say."""
    joint = _add(nodes, "Softmax", _score_vectors(nodes, log_odds, vectors), axis=1)
    both = _add(nodes, "Add", _add(nodes, "MatMul", joint, vectors), _add(nodes, "Sigmoid", log_odds))
    return _add(nodes, "Greater", both, _add_constant(nodes, 1.0))


def _decode_by_rank(nodes: Nodes, log_odds: str, count: int) -> str:
    """The labels of the largest log-odds, so many; of equals, the first."""
    _, best = _sort(nodes, log_odds, count)
    none = _add(nodes, "Sub", log_odds, log_odds)
    ones = _add(nodes, "Expand", _add_constant(nodes, 1.0), _add(nodes, "Shape", best))
    return _add(nodes, "ScatterElements", none, best, ones, axis=1)


def _sort(nodes: Nodes, values: str, count: int) -> tuple[str, str]:
    """The largest values of the last axis, descending, and where they stand; of equals, the first."""
    names = [f"{nodes.prefix}{name}_{len(nodes.nodes)}" for name in ("Largest", "Places")]
    nodes.nodes.append(helper.make_node("TopK", [values, _add_integer(nodes, count)], names, names[0], axis=-1))
    return names[0], names[1]


def _decode_by_f1(nodes: Nodes, decision: Decision, terms: str, n_labels: int) -> str:
    """The label vector of largest expected F-measure; see `decoding.decode_by_f1`, the names of which are used here."""
    if len(decision.vectors):
        sizes, shares, empty = _count_known(nodes, decision, terms)
    else:
        sizes, shares, empty = _count_independent(nodes, _clip(nodes, terms, CERTAIN), n_labels)
    lengths = np.arange(1, n_labels + 1)
    gains = _add_constant(nodes, 2.0 / (lengths[:, None] + sizes))  # (lengths, sizes)
    w = _add(nodes, "MatMul", gains, shares)  # (N, lengths, K)
    largest, order = _sort(nodes, w, n_labels)
    sums = _add(nodes, "CumSum", largest, _add_constant(nodes, np.int64(2)))
    own = _add(nodes, "Mul", sums, _add_constant(nodes, np.eye(n_labels)))  # of each length its own number of labels
    expected = _add(nodes, "ReduceSum", own, _add_integer(nodes, 2), keepdims=0)
    best = _add(nodes, "ArgMax", expected, axis=1, keepdims=1)  # the length, less one
    order = _add(nodes, "GatherND", order, best, batch_dims=1)
    ranks = _add(nodes, "Expand", _add_constant(nodes, lengths - 1), _add(nodes, "Shape", order))
    rank = _add(nodes, "ScatterElements", order, order, ranks, axis=1)
    chosen = _add(nodes, "LessOrEqual", rank, best)
    worthwhile = _add(nodes, "Greater", _reduce(nodes, "ReduceMax", expected), empty)
    return _add(nodes, "And", chosen, worthwhile)


def _count_known(nodes: Nodes, decision: Decision, terms: str) -> tuple[NDArray[np.int64], str, str]:
    """The sizes of the known label vectors, P(y_k = 1, |y| = s), shape (N, sizes, K), and P(y is empty), (N, 1)."""
    vectors = _add(nodes, "Cast", _add_constant(nodes, decision.vectors), to=TensorProto.DOUBLE)
    joint = _add(nodes, "Softmax", _score_vectors(nodes, terms, vectors, decision.loss.known), axis=1)
    if decision.calibration is not None and decision.calibration.joint is not None:
        joint = _interpolate(nodes, [decision.calibration.joint], joint)
        joint = _add(nodes, "Div", joint, _reduce(nodes, "ReduceSum", joint))
    length = decision.vectors.sum(axis=1)
    sizes = np.unique(length)
    shares = []
    for size in sizes:  # where that is 0, the products are 0 as well
        of_size = _add_constant(nodes, np.flatnonzero(length == size))
        known = _add(nodes, "Gather", vectors, of_size)
        share = _add(nodes, "MatMul", _add(nodes, "Gather", joint, of_size, axis=1), known)
        shares.append(_add(nodes, "Unsqueeze", share, _add_integer(nodes, 1)))
    is_empty = _add_constant(nodes, (length == 0).astype(np.float64)[:, None])
    return sizes, _add(nodes, "Concat", *shares, axis=1), _add(nodes, "MatMul", joint, is_empty)


def _count_independent(nodes: Nodes, log_odds: str, n_labels: int) -> tuple[NDArray[np.int64], str, str]:
    """The same for independent labels: for each label, one after another is counted of the others."""
    p = _add(nodes, "Sigmoid", log_odds)
    one = _add_constant(nodes, 1.0)
    columns = _add(nodes, "Unsqueeze", _add(nodes, "Transpose", p), _add_constant(nodes, np.array([2, 3])))
    is_other = _add_constant(nodes, 1 - np.eye(n_labels)[:, None, :])  # for each label: which it is not, (K, 1, K)
    first = np.zeros((1, n_labels, 1))
    first[0, 0] = 1.0
    none = _add(nodes, "Unsqueeze", _add(nodes, "Sub", p, p), _add_integer(nodes, 1))
    counts = _add(nodes, "Add", none, _add_constant(nodes, first))  # (N, counts, K): of no label there is none

    inner = Nodes(f"{INNER}count/", [])
    before, column, others = (f"{inner.prefix}{name}" for name in ("before", "column", "others"))
    q = _add(inner, "Mul", column, others)
    missed = _add(inner, "Mul", before, _add(inner, "Sub", _add_constant(inner, 1.0), q))
    ends = _add_integer(inner, 0), _add_integer(inner, -1), _add_integer(inner, 1)
    shorter = _add(inner, "Slice", before, *ends)
    shifted = _add(inner, "Pad", shorter, _add_constant(inner, np.array([0, 1, 0, 0, 0, 0])))
    after = _add(inner, "Add", missed, _add(inner, "Mul", shifted, q))
    kinds = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in (before, column, others)]
    output = helper.make_tensor_value_info(after, TensorProto.DOUBLE, None)
    body = helper.make_graph(inner.nodes, inner.prefix, kinds, [output])
    counts = _add(nodes, "Scan", counts, columns, is_other, body=body, num_scan_inputs=2)

    shares = _add(nodes, "Mul", counts, _add(nodes, "Unsqueeze", p, _add_integer(nodes, 1)))
    empty = _add(nodes, "ReduceProd", _add(nodes, "Sub", one, p), _add_integer(nodes, 1), keepdims=1)
    return np.arange(1, n_labels + 1), shares, empty


def _choose_vectors(nodes: Nodes, ratings: str, vectors: str) -> str:
    """For each example the vector rated highest; of equals, the first."""
    index = _add(nodes, "ArgMax", ratings, axis=1, keepdims=0)
    return _add(nodes, "Gather", vectors, index)


def _score_vectors(nodes: Nodes, terms: str, vectors: str, known: KnownVectors | None = None) -> str:
    """The logarithm of the probability of each known label vector, but for what all share; see `Decision.terms`."""
    sums = _add(nodes, "MatMul", _clip(nodes, terms, CERTAIN), _add(nodes, "Transpose", vectors))
    return sums if known is None else _add(nodes, "Add", sums, _add_constant(nodes, known.bias))


def _sum_exponentials(nodes: Nodes, scores: str, vectors: str) -> str:
    """sum_k exp(-y_k f_k) for each example and known vector, up to a factor per example: its logarithm orders Eq. 7.

    As in `decoding`: two products of matrices of non-negative numbers, and for the rare examples whose scores are so
    far apart that all their sums are tiny, once more by logarithms.
    """
    shift = _reduce(nodes, "ReduceMax", _add(nodes, "Abs", scores))
    others = _add(nodes, "Sub", _add_constant(nodes, 1.0), vectors)
    sums = []
    for exponents, chosen in (_add(nodes, "Neg", scores), vectors), (scores, others):
        exponentials = _add(nodes, "Exp", _add(nodes, "Sub", exponents, shift))
        sums.append(_add(nodes, "MatMul", exponentials, _add(nodes, "Transpose", chosen)))
    total = _add(nodes, "Add", *sums)

    smallest = _add(nodes, "Squeeze", _reduce(nodes, "ReduceMin", total), _add_integer(nodes, 1))
    is_tiny = _add(nodes, "Less", smallest, _add_constant(nodes, TINY))
    any_tiny = _add(nodes, "ReduceMax", _add(nodes, "Cast", is_tiny, to=TensorProto.INT32), keepdims=0)
    usual, again = Nodes(f"{INNER}usual/", []), Nodes(f"{INNER}again/", [])
    return _add(
        nodes,
        "If",
        _add(nodes, "Cast", any_tiny, to=TensorProto.BOOL),
        else_branch=_make_branch(usual, _add(usual, "Identity", total)),
        then_branch=_make_branch(again, _sum_again(again, scores, _add(nodes, "Sub", others, vectors), is_tiny, total)),
    )


def _make_branch(nodes: Nodes, result: str) -> GraphProto:
    output = helper.make_tensor_value_info(result, TensorProto.DOUBLE, None)
    return helper.make_graph(nodes.nodes, nodes.prefix, [], [output])


def _sum_again(nodes: Nodes, scores: str, signs: str, is_tiny: str, total: str) -> str:
    """The sums of exponentials of the examples for which they are tiny, by logarithms; the others as they are."""
    apart = _add(nodes, "Unsqueeze", _add(nodes, "Compress", scores, is_tiny, axis=0), _add_integer(nodes, 1))
    exponents = _add(nodes, "Mul", apart, signs)
    largest = _reduce(nodes, "ReduceMax", exponents)
    rest = _add(nodes, "Exp", _add(nodes, "Sub", exponents, largest))
    logarithm = _add(nodes, "Log", _add(nodes, "ReduceSum", rest, _add_integer(nodes, -1), keepdims=0))
    largest = _add(nodes, "Squeeze", largest, _add_integer(nodes, -1))
    # differences first: beside an enormous exponent the logarithm of a sum would be lost
    logarithm = _add(nodes, "Add", _excess(nodes, largest), logarithm)
    sums = _add(nodes, "Exp", _add(nodes, "Min", _excess(nodes, logarithm), _add_constant(nodes, 700.0)))
    rows = _add(nodes, "Transpose", _add(nodes, "NonZero", is_tiny))
    return _add(nodes, "ScatterND", total, rows, sums)


def _excess(nodes: Nodes, values: str) -> str:
    """By how much values exceed the smallest of their row."""
    return _add(nodes, "Sub", values, _reduce(nodes, "ReduceMin", values))


def _reduce(nodes: Nodes, operator: str, values: str) -> str:
    return _add(nodes, operator, values, _add_integer(nodes, -1), keepdims=1)


def _clip(nodes: Nodes, values: str, limit: float) -> str:
    return _add(nodes, "Clip", values, _add_constant(nodes, -limit), _add_constant(nodes, limit))
