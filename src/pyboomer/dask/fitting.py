"""Fitting on a cluster: labels are profiled, features sketched, blocks binned where they lie, and a team learns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import dask
import numpy as np
from distributed import Client, default_client, wait
from numpy.typing import NDArray

from pyboomer.columns.binned import LARGEST, SAMPLE, mark_bins
from pyboomer.columns.gaps import Ends, round_by_bins
from pyboomer.dask.blocks import (
    Kinds,
    Profile,
    Reading,
    choose_common,
    choose_weight_unit,
    count_categories,
    encode_block,
    find_sample_edges,
    list_crowded,
    measure_weights,
    merge_ends,
    merge_formats,
    merge_kinds,
    merge_schemas,
    profile_block,
    sketch_block,
)
from pyboomer.dask.parts import Part, compute, divide_parts, share
from pyboomer.dask.team import TeamEngine
from pyboomer.data.class_weight import weigh_classes
from pyboomer.data.examples import Examples
from pyboomer.data.tables import Table, check_feature_names, warn_of_identifiers
from pyboomer.engine.cluster.task import ClusterTask, Summary, check_settings, learn_default_head, suits_odds
from pyboomer.engine.protocol import Chunk, Settings, Task
from pyboomer.engine.rounds import find_round
from pyboomer.learning import sizing
from pyboomer.learning.fitted import FittedModel
from pyboomer.learning.reading import FitArguments, TrainingData, describe, read_features, split_eval_set
from pyboomer.learning.sizing import make_settings
from pyboomer.learning.stopping import begin_validation
from pyboomer.learning.training import Monitor, collect_rules, find_scales, keep, run, take_targets
from pyboomer.losses.compiled import QUADRATIC
from pyboomer.rules.ensemble import RuleEnsemble

CHUNK_SECONDS = 0.5  # how long a team learns before the client looks for Ctrl-C
TOGETHER = 8  # blocks whose labels are merged at once
MOST_VALUES = 2**24  # of samples that one task takes quantiles of: 128 MB


Present = list[tuple[Part, Profile, int]]  # parts with examples that count, and the number of the first of these


class Counted(NamedTuple):
    """What is known of labels and weights."""

    present: Present
    kinds: Kinds | None
    unit: float  # of weights


class Binned(NamedTuple):
    """Data in blocks, each on a worker."""

    keys: dict[str, tuple[list[str], list[str]]]  # of the blocks that each worker is to have
    ends: Ends  # of bins
    scale: float  # the unit of targets ...
    loss_scale: float  # ... and that of the loss
    blocks: list[Any]  # what keeps them


def find_client(client: Client | None) -> Client:
    """The client given, or the one that there is."""
    if client is not None and not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {client!r}")
    try:
        return client or default_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client: make one, `from distributed import Client; client = Client()`, or pass client="
        ) from None


def refuse(params: Mapping[str, Any], eval_set: Any) -> None:
    """Refuse what is not done on a cluster, and say what to do instead."""
    if params.get("calibration") is not None:
        raise ValueError("calibration must be None on a cluster: it takes six models, each of all data")
    if params["device"] == "cuda":
        raise ValueError('device must be "cpu" or "auto" on a cluster, whose workers learn on their processors')
    if params["max_bins"] is None:
        raise ValueError('max_bins must be "auto" or a number on a cluster, where features are binned; got None')
    if params["scoring"] != "loss":
        raise ValueError(f'scoring must be "loss" on a cluster, got {params["scoring"]!r}')
    if params["early_stopping"] and eval_set is None:
        raise ValueError("early_stopping needs an eval_set on a cluster: hold out some blocks, and pass them")


class ClusterData(NamedTuple):
    """What was read of data that stay where they are."""

    training: TrainingData  # of the examples: one for all that have the same labels, without features
    summary: Summary
    present: Present
    held_out: Present
    edges: tuple[NDArray[Any], ...]  # what separates bins
    class_weight: Any


def read(client: Client, params: Mapping[str, Any], past: FittedModel | None, passed: FitArguments) -> ClusterData:
    """Read what was passed to `fit`, as `learning.reading.read` does with data of this machine."""
    owner, read_y, X, y, sample_weight, eval_set, feature_names = passed
    params = {**params, "callbacks": None}  # which need not be sent to workers
    past = None if past is None else replace(past, params=params)
    counted = count_parts(client, read_y if past is None else past.label_format.read, divide_parts(X, y, sample_weight))
    profiles = [profile for _, profile, _ in counted.present]
    if not profiles:
        raise ValueError("Y has no example that counts: all have weight 0, no known label, or there are none")
    merged = merge_formats([profile.label_format for profile in profiles])
    label_format = merged if past is None else past.label_format
    examples, class_weight = merge_examples(params.get("class_weight"), counted, label_format)
    held_out = [] if eval_set is None else read_held_out(client, label_format.read, eval_set)
    names = feature_names() if callable(feature_names) else feature_names
    if past is not None:
        check_feature_names(names, past.rules.schema.names)
    read_X = partial(read_features, owner, {**params, "random_state": None}, past, names)
    table, sparse, edges = sketch_features(client, read_X, counted.present, params["max_bins"])
    if past is None:
        warn_of_identifiers(table.schema, examples.size)
    training = describe(params, past, examples._replace(sparse=sparse), table, label_format)
    summary = summarise(examples, counted, held_out)
    return ClusterData(training, summary, counted.present, held_out, edges, class_weight)


def choose_settings(model: FittedModel, data: ClusterData) -> Settings:
    """How rules are learned, if a cluster can learn them so."""
    examples, n_labels = data.training.examples, data.training.examples.Y.shape[1]
    settings = make_settings(model, examples, data.training.seed)
    if model.params["max_samples"] == "auto" and settings.max_samples is not None:
        settings = replace(settings, max_samples=sizing.ENOUGH)  # a sample is sent, rule by rule
    if model.params["rules_per_round"] == "auto" and not suits_odds(settings, data.summary, n_labels):
        settings = replace(settings, rules_per_round=1)
    check_settings(settings, data.summary, n_labels)
    if not examples.hold_labels and settings.loss not in QUADRATIC:
        raise ValueError(f'loss must be "squared-error" on a cluster, got {settings.loss.name!r}')
    return settings


def learn(
    engine: TeamEngine, data: ClusterData, model: FittedModel, settings: Settings, binned: Binned, monitor: Monitor
) -> tuple[FittedModel, Exception | None]:
    """Let a team learn further rules of a model; returns what to keep of them, and what went wrong."""
    training, loss_scale = data.training, binned.loss_scale
    losses: dict[int, float] = {}

    def judge(rules: RuleEnsemble) -> float:  # noqa: ARG001 (the team knows them)
        losses[engine.n_rules] = engine.training_loss() * loss_scale
        return -engine.held_out_loss() * loss_scale

    def name_rules(chunks: Sequence[Chunk]) -> RuleEnsemble:
        names = training.label_format.names
        return collect_rules(chunks, training.schema, names, data.edges, binned.scale, loss_scale)

    validation = begin_validation(model, judge) if data.held_out else None
    if validation is not None:
        validation.losses = losses
    trained = run(engine, name_rules, settings.n_rules, loss_scale, monitor, model.rules or None, validation)
    trained = trained._replace(rules=round_by_bins(trained.rules, binned.ends))
    return keep(model, trained, training.examples, settings, monitor.begin), trained.error


def start_team(client: Client, data: ClusterData, model: FittedModel, settings: Settings, binned: Binned) -> TeamEngine:
    """The workers that have blocks, as an engine."""
    engine = TeamEngine(client, binned.keys, plan_task(settings, data, len(model.rules)), model.params["n_jobs"])
    binned.blocks.clear()  # the workers have made shards of them
    return engine


def plan_task(settings: Settings, data: ClusterData, n_rules: int) -> ClusterTask:
    """What the team is given; the default rule of labels is learned here, from one example of each kind."""
    examples, schema, default = data.training.examples, data.training.schema, None
    if n_rules == 0 and examples.hold_labels:
        default = learn_default_head(Task(None, *take_targets(examples)), settings)
    nominal = mark_bins(len(schema.names), schema.nominal)
    n_labels, fixed = examples.Y.shape[1], data.training.fixed_features
    return ClusterTask(settings, data.summary, n_labels, nominal, fixed, default, n_rules)


# --- What is known of all examples ------------------------------------------------------------------------------------


def count_parts(client: Client, read_y: Callable[[Any], Any], parts: list[Part]) -> Counted:
    """Look at all labels and weights."""
    unit = 1.0
    weights = [part.weight for part in parts if part.weight is not None]
    if weights:
        unit = choose_weight_unit(compute(client, [dask.delayed(measure_weights)(weight) for weight in weights]))
    shared = share(read_y)
    profile, take, merge = dask.delayed(profile_block), dask.delayed(_take), dask.delayed(merge_kinds)
    tasks = [profile(part.name, part.y, part.weight, shared, unit, number) for number, part in enumerate(parts)]
    kinds = [take(task, 1) for task in tasks]
    while len(kinds) > 1:  # so that few are in one place at a time
        kinds = [merge(kinds[i : i + TOGETHER]) for i in range(0, len(kinds), TOGETHER)]
    *profiles, merged = compute(client, [*(take(task, 0) for task in tasks), *kinds])
    firsts = np.cumsum([0, *(0 if profile is None else profile.n for profile in profiles)]).tolist()
    described = zip(parts, profiles, firsts[:-1], strict=True)
    return Counted([some for some in described if some[1] is not None and some[1].n > 0], merged, unit)


def merge_examples(class_weight: Any, counted: Counted, label_format: Any) -> tuple[Examples, Any]:
    """One example for all that have the same labels; of targets, one for all. And what `class_weight` stands for."""
    present, kinds, unit = counted
    profiles = [profile for _, profile, _ in present]
    n = sum(profile.n for profile in profiles)
    if kinds is None:
        known = np.any([profile.known for profile in profiles], axis=0)
        weight = np.array([sum(profile.weight for profile in profiles) * unit])
        Y = np.zeros((1, len(known)))
        return Examples(None, Y, weight, None if known.all() else known[None].astype(np.float64), n), None
    labels = kinds.Y if label_format.classes is None else label_format.read(kinds.Y[:, 0]).values
    if isinstance(class_weight, str):
        class_weight = balance(kinds, labels, label_format)
    weight = kinds.weight.astype(np.float64) * unit
    examples = Examples(None, labels, weight, kinds.label_weight, n)
    return weigh_classes(examples, class_weight, label_format), class_weight


def find_alike(profiles: Sequence[Profile]) -> NDArray[Any]:
    """Two targets of the same standard deviation as all; of labels, nothing is said."""
    counts, totals, squares = np.array([profile.moments for profile in profiles]).T
    count = max(counts.sum(), 1)
    distances = totals / np.maximum(counts, 1) - totals.sum() / count  # of the means of blocks, which squares are about
    spread = np.sqrt((squares + counts * np.square(distances)).sum() / count)
    return np.array([[-spread], [spread]])


def balance(kinds: Kinds, Y: NDArray[Any], label_format: Any) -> Any:
    """What class_weight="balanced" stands for: those of each class count as much as those of any other."""

    def weigh(counts: dict[Any, int]) -> dict[Any, float]:
        total, present = sum(counts.values()), sum(count > 0 for count in counts.values())
        return {value: total / (max(present, 1) * max(count, 1)) for value, count in counts.items()}

    if label_format.classes is not None:
        numbers = Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1)
        counts = np.bincount(numbers, weights=kinds.times, minlength=len(label_format.classes))
        return weigh({value: int(count) for value, count in zip(label_format.classes.tolist(), counts, strict=True)})
    known = np.ones(Y.shape, dtype=bool) if kinds.label_weight is None else kinds.label_weight > 0
    return [
        weigh({value: int(kinds.times[known[:, k] & (Y[:, k] == value)].sum()) for value in (0, 1)})
        for k in range(Y.shape[1])
    ]


def summarise(examples: Examples, counted: Counted, held_out: Present) -> Summary:
    """What the team is told of all examples together."""
    present, kinds, unit = counted
    weight, largest = float(examples.weight.sum()), max(profile.largest for _, profile, _ in present)
    if kinds is not None:
        largest = float((kinds.largest * examples.weight / (kinds.weight * unit)).max()) * (1 + 1e-9)
    label_weight = examples.label_weight
    weighted = label_weight is not None and bool(((label_weight != 0) & (label_weight != 1)).any())
    n_held_out = sum(profile.n for _, profile, _ in held_out)
    return Summary(examples.size, weight, largest, weighted, n_held_out, float(n_held_out))


# --- Features ---------------------------------------------------------------------------------------------------------


def sketch_features(
    client: Client, read_X: Callable[[Any], Table], present: Present, max_bins: Any
) -> tuple[Table, bool, tuple[NDArray[Any], ...]]:
    """What the features are, without values; whether most of these are 0, and what separates bins."""
    n = sum(profile.n for _, profile, _ in present)
    shared, sketch, take = share(read_X), dask.delayed(sketch_block), dask.delayed(_take)
    futures = client.compute(
        [sketch(part.name, part.X, profile.absent, first, n, shared) for part, profile, first in present]
    )
    schemas, features, filled = zip(*compute(client, [take(future, slice(0, 3)) for future in futures]), strict=True)
    schema = merge_schemas(schemas)
    table = Table(None, schema, features[0])
    count = LARGEST if max_bins == "auto" else int(max_bins)
    n_features = len(schema.names)
    size = max(1, MOST_VALUES // min(n, 2 * SAMPLE))
    cut = dask.delayed(_cut)
    tasks = []
    for begin in range(0, n_features, size):
        samples = [cut(future, begin, begin + size) for future in futures]
        nominal = [f - begin for f in schema.nominal]
        tasks.append(dask.delayed(find_sample_edges)(samples, nominal, count))
    edges = [own for some in compute(client, tasks) for own in some]
    crowded = list_crowded(schema)
    if crowded:
        count_in, about = dask.delayed(count_categories), (share(table), crowded)
        counts = compute(client, [count_in(part.name, part.X, profile.absent, *about) for part, profile, _ in present])
        for f, times in zip(crowded, zip(*counts, strict=True), strict=True):
            edges[f] = choose_common(np.sum(times, axis=0))
    return table, 2 * sum(filled) < n * n_features, tuple(edges)


def _cut(sketch: Any, begin: int, end: int) -> NDArray[Any]:
    return np.asarray(sketch.sample[:, begin:end])


# --- Blocks -----------------------------------------------------------------------------------------------------------


def read_held_out(client: Client, read_y: Callable[[Any], Any], eval_set: Any) -> Present:
    """The parts of the examples that are not learned from."""
    X, y = split_eval_set(eval_set)
    held_out = count_parts(client, read_y, divide_parts(X, y, name="eval_set: ")).present
    if not held_out:
        raise ValueError("eval_set has no example with a known label")
    return held_out


def bin_parts(client: Client, data: ClusterData, model: FittedModel, settings: Settings) -> Binned:
    """Bin all parts where they are."""
    training, present, held_out = data.training, data.present, data.held_out
    scale, loss_scale = find_scales(find_alike([profile for _, profile, _ in present]), model.loss)
    table = Table(None, training.schema, training.features)
    n_before = find_round(len(model.rules), settings.rules_per_round)[0]
    about = training.label_format, data.class_weight, data.edges, scale
    reading = Reading(table, *about, model.rules or None, n_before)
    shared, shared_for_others = share(reading), share(reading)
    encode, take = dask.delayed(encode_block), dask.delayed(_take)
    tasks = [encode(part.name, part.X, part.y, part.weight, first, shared, False) for part, _, first in present]
    others = [encode(part.name, part.X, part.y, None, first, shared_for_others, True) for part, _, first in held_out]
    blocks = client.compute([take(task, 0) for task in [*tasks, *others]] + [take(task, 1) for task in tasks])
    blocks, ends = blocks[: len(tasks) + len(others)], blocks[len(tasks) + len(others) :]
    merged: Ends = client.submit(merge_ends, ends, pure=False).result()
    where = spread([profile.n for _, profile, _ in [*present, *held_out]], find_blocks(client, blocks))
    keys: dict[str, tuple[list[str], list[str]]] = {}
    for i, (block, address) in enumerate(zip(blocks, where, strict=True)):
        keys.setdefault(address, ([], []))[i >= len(tasks)].append(block.key)
    return Binned(keys, merged, scale, loss_scale, blocks)


def find_blocks(client: Client, blocks: Sequence[Any]) -> list[Sequence[str]]:
    """Wait for blocks; returns the workers that have each."""
    while True:
        with client.as_current():  # `wait` asks the current client, which may be another one, or none
            wait(blocks)
        for block in blocks:
            if block.status == "error":
                block.result()  # raises what went wrong
        has = client.who_has(blocks)
        if all(has[block.key] for block in blocks):  # else a worker was lost, and Dask makes its blocks once more
            return [has[block.key] for block in blocks]


def spread(sizes: Sequence[int], has: Sequence[Sequence[str]]) -> list[str]:
    """Where each block is to be, given its size and the workers that have it.

    Each rule takes as long as the worker that has most to do. So blocks move, once, until all have about as much.
    """
    load = dict.fromkeys(sorted({address for workers in has for address in workers}), 0)
    where: list[str] = []
    for size, workers in zip(sizes, has, strict=True):
        where.append(min(workers, key=lambda address: (load[address], address)))
        load[where[-1]] += size
    while True:
        most, least = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
        gap = load[most] - load[least]
        movable = [i for i, address in enumerate(where) if address == most and 0 < sizes[i] < gap]
        if not movable:
            return where
        best = min(movable, key=lambda i: abs(gap - 2 * sizes[i]))
        where[best] = least
        load[most], load[least] = load[most] - sizes[best], load[least] + sizes[best]


def _take(pair: Any, i: int) -> Any:
    return pair[i]
