"""Fitting on a cluster: labels are profiled, features sketched, blocks binned where they lie, and a team learns."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
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
    merge_forms,
    merge_kinds,
    merge_schemas,
    profile_block,
    sketch_block,
)
from pyboomer.dask.parts import Part, compute, divide_parts, share
from pyboomer.dask.team import TeamEngine
from pyboomer.data.examples import Examples, warn_of_unknown
from pyboomer.data.labels import read_labels
from pyboomer.data.tables import check_feature_names, find_features, warn_of_identifiers
from pyboomer.engine.cluster.learner import Course, Summary, assign, check_settings, learn_default_head
from pyboomer.engine.promise import Chunk, Settings, Task
from pyboomer.learning import sizing
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.learning.stopping import Validation
from pyboomer.learning.training import Lesson, Watch, collect_rules, run
from pyboomer.losses.catalog import DEGREE
from pyboomer.losses.twins import QUADRATIC
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.schema import Schema

CHUNK_SECONDS = 0.5  # how long a team learns before the client looks for Ctrl-C
TOGETHER = 8  # blocks whose labels are merged at once
MOST_VALUES = 2**24  # of samples that one task takes quantiles of: 128 MB


Present = list[tuple[Part, Profile, int]]  # parts with examples that count, and the number of the first of these


class Counted(NamedTuple):
    """What is known of labels and weights."""

    present: Present
    kinds: Kinds | None
    unit: float  # of weights


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


def refuse(model: Any, eval_set: Any) -> None:
    """Refuse what is not done on a cluster, and say what to do instead."""
    if getattr(model, "calibration", None) is not None:
        raise ValueError("calibration must be None on a cluster: it takes six models, each of all data")
    if model.device == "cuda":
        raise ValueError('device must be "cpu" or "auto" on a cluster, whose workers learn on their processors')
    if model.max_bins is None:
        raise ValueError('max_bins must be "auto" or a number on a cluster, where features are binned; got None')
    if model.scoring != "loss":
        raise ValueError(f'scoring must be "loss" on a cluster, got {model.scoring!r}')
    if model.early_stopping and eval_set is None:
        raise ValueError("early_stopping needs an eval_set on a cluster: hold out some blocks, and pass them")


def fit(model: Any, X: Any, y: Any, sample_weight: Any, eval_set: Any, feature_names: Any) -> None:
    """Fit an estimator, as its own `_learn` does with data of this machine."""
    begin = time.perf_counter()
    past = model._take_past()
    refuse(model, eval_set)
    client = find_client(model.client)
    reader = model._make_local(past is not None)  # what blocks are read with
    reader.set_params(callbacks=None, random_state=None)

    counted = count_parts(client, reader, divide_parts(X, y, sample_weight))
    profiles = [profile for _, profile, _ in counted.present]
    if not profiles:
        raise ValueError("Y has no example that counts: all have weight 0, no known label, or there are none")
    form = merge_forms([profile.form for profile in profiles]) if past is None else model._form
    examples = merge_examples(reader, counted, form)
    warn_of_unknown(examples, form.names)
    if past is None:
        model.loss_ = model._choose_loss(examples, form)
    model._learn_form(form, examples, past is not None)
    reader._form = form

    summary = summarise(examples, counted)
    held_out = None if eval_set is None else read_held_out(client, reader, eval_set)
    if held_out is not None:
        count = sum(profile.n for _, profile, _ in held_out)
        summary = summary._replace(n_held_out=count, held_out_weight=float(count))

    schema, facts, sparse, edges = read_features(client, reader, counted.present, feature_names, past)
    reader.__dict__.update(facts)
    model.__dict__.update(facts)
    settings = model._make_settings(model._draw_seed(past), examples._replace(sparse=sparse), schema)
    if model.max_samples == "auto" and settings.max_samples is not None:
        settings = replace(settings, max_samples=sizing.ENOUGH)  # a sample is sent, rule by rule
    check_settings(settings, len(form.names))
    if counted.kinds is None and settings.loss not in QUADRATIC:
        raise ValueError(f'loss must be "squared-error" on a cluster, got {settings.loss.name!r}')
    scale = model._find_scale(find_alike(profiles))
    keys, ends, blocks = bin_parts(client, counted.present, held_out or [], Reading(reader, schema, edges, scale, past))
    course = plan_course(model, settings, summary, examples, schema, past)
    lesson = Lesson(
        *(None, examples.Y, examples.weight, None, schema, form.names),
        scale=scale,
        loss_scale=scale ** DEGREE.get(model.loss_, 0),
    )
    with DeferredInterrupt() as interrupt, closing(TeamEngine(client, keys, course, model.n_jobs)) as engine:
        del blocks  # the workers have made shards of them
        watch = Watch(interrupt, model._list_callbacks(), bool(model.verbose), begin, CHUNK_SECONDS)
        losses: dict[int, float] = {}
        validation = None if held_out is None else validate(model, engine, lesson, losses, past)

        def name_rules(chunks: Sequence[Chunk]) -> RuleEnsemble:
            return collect_rules(chunks, lesson, edges)

        trained = run(engine, name_rules, settings.n_rules, lesson.loss_scale, watch, past, validation)
        trained = trained._replace(rules=round_by_bins(trained.rules, ends))
        model.client_ = client
        model._keep(trained, settings, examples, validation, watch, lambda rules: losses[len(rules)])


def plan_course(
    model: Any, settings: Settings, summary: Summary, examples: Examples, schema: Schema, past: RuleEnsemble | None
) -> Course:
    """How the team learns; the default rule of labels is learned here, from one example of each kind."""
    n_labels, default = examples.Y.shape[1], None
    duty = assign(settings, summary, n_labels, mark_bins(len(schema.names), schema.nominal))
    of_labels = examples.Y.dtype == np.uint8
    if past is None and of_labels:
        task = Task(None, model._sign(examples.Y), examples.weight, examples.label_weight)
        default = learn_default_head(task, settings)
        duty = duty._replace(head=default[0])
    fixed = np.flatnonzero(find_features("fixed_features", model.fixed_features, schema.names))
    return Course(settings, duty, summary, n_labels, fixed, default, 0 if past is None else len(past))


# --- What is known of all examples ------------------------------------------------------------------------------------


def count_parts(client: Client, reader: Any, parts: list[Part]) -> Counted:
    """Look at all labels and weights."""
    unit = 1.0
    weights = [part.weight for part in parts if part.weight is not None]
    if weights:
        unit = choose_weight_unit(compute(client, [dask.delayed(measure_weights)(weight) for weight in weights]))
    shared = share(reader)
    profile, take, merge = dask.delayed(profile_block), dask.delayed(_take), dask.delayed(merge_kinds)
    tasks = [profile(part.name, part.y, part.weight, shared, unit, number) for number, part in enumerate(parts)]
    kinds = [take(task, 1) for task in tasks]
    while len(kinds) > 1:  # so that few are in one place at a time
        kinds = [merge(kinds[i : i + TOGETHER]) for i in range(0, len(kinds), TOGETHER)]
    *profiles, merged = compute(client, [*(take(task, 0) for task in tasks), *kinds])
    firsts = np.cumsum([0, *(0 if profile is None else profile.n for profile in profiles)]).tolist()
    described = zip(parts, profiles, firsts[:-1], strict=True)
    return Counted([some for some in described if some[1] is not None and some[1].n > 0], merged, unit)


def merge_examples(reader: Any, counted: Counted, form: Any) -> Examples:
    """One example for all that have the same labels; of targets, one for all."""
    present, kinds, unit = counted
    profiles = [profile for _, profile, _ in present]
    n = sum(profile.n for profile in profiles)
    if kinds is None:
        known = np.any([profile.known for profile in profiles], axis=0)
        weight = np.array([sum(profile.weight for profile in profiles) * unit])
        Y = np.zeros((1, len(known)))
        return Examples(None, Y, weight, None if known.all() else known[None].astype(np.float64), n)
    labels = kinds.Y if form.classes is None else read_labels(kinds.Y[:, 0], form).values
    if getattr(reader, "class_weight", None) == "balanced":
        reader.class_weight = balance(kinds, labels, form)
    weight = kinds.weight.astype(np.float64) * unit
    return reader._weigh(Examples(None, labels, weight, kinds.label_weight, n), form)


def find_alike(profiles: Sequence[Profile]) -> NDArray[Any]:
    """Two targets of the same standard deviation as all; of labels, nothing is said."""
    counts, totals, squares = np.array([profile.moments for profile in profiles]).T
    count = max(counts.sum(), 1)
    distances = totals / np.maximum(counts, 1) - totals.sum() / count  # of the means of blocks, which squares are about
    spread = np.sqrt((squares + counts * np.square(distances)).sum() / count)
    return np.array([[-spread], [spread]])


def balance(kinds: Kinds, Y: NDArray[Any], form: Any) -> Any:
    """What class_weight="balanced" stands for: those of each class count as much as those of any other."""

    def weigh(counts: dict[Any, int]) -> dict[Any, float]:
        total, present = sum(counts.values()), sum(count > 0 for count in counts.values())
        return {value: total / (max(present, 1) * max(count, 1)) for value, count in counts.items()}

    if form.classes is not None:
        numbers = Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1)
        counts = np.bincount(numbers, weights=kinds.times, minlength=len(form.classes))
        return weigh({value: int(count) for value, count in zip(form.classes.tolist(), counts, strict=True)})
    known = np.ones(Y.shape, dtype=bool) if kinds.label_weight is None else kinds.label_weight > 0
    return [
        weigh({value: int(kinds.times[known[:, k] & (Y[:, k] == value)].sum()) for value in (0, 1)})
        for k in range(Y.shape[1])
    ]


def summarise(examples: Examples, counted: Counted) -> Summary:
    """What the team is told of all examples together."""
    present, kinds, unit = counted
    weight, largest = float(examples.weight.sum()), max(profile.largest for _, profile, _ in present)
    if kinds is not None:
        largest = float((kinds.largest * examples.weight / (kinds.weight * unit)).max()) * (1 + 1e-9)
    label_weight = examples.label_weight
    weighted = label_weight is not None and bool(((label_weight != 0) & (label_weight != 1)).any())
    return Summary(examples.size, weight, largest, weighted)


# --- Features ---------------------------------------------------------------------------------------------------------


def read_features(
    client: Client,
    reader: Any,
    present: Present,
    feature_names: Any,
    past: RuleEnsemble | None,
) -> tuple[Schema, dict[str, Any], bool, tuple[NDArray[Any], ...]]:
    """What the features are, what an estimator knows of them, whether most values are 0, and what separates bins."""
    if past is not None:
        check_feature_names(feature_names, past.schema.names)
    n = sum(profile.n for _, profile, _ in present)
    shared, names = share(reader), feature_names() if callable(feature_names) else feature_names
    sketch = dask.delayed(sketch_block)
    sketches = [sketch(part.name, part.X, profile.absent, first, n, shared, names) for part, profile, first in present]
    take = dask.delayed(_take)
    futures = client.compute(sketches)
    schemas, facts, filled = zip(*compute(client, [take(future, slice(0, 3)) for future in futures]), strict=True)
    schema = merge_schemas(schemas)
    if past is None:
        warn_of_identifiers(schema, n)
    count = LARGEST if reader.max_bins == "auto" else int(reader.max_bins)
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
        reader.__dict__.update(facts[0])
        shared = share(reader)
        count_in = dask.delayed(count_categories)
        counts = compute(
            client,
            [count_in(part.name, part.X, profile.absent, shared, schema, crowded) for part, profile, _ in present],
        )
        for f, times in zip(crowded, zip(*counts, strict=True), strict=True):
            edges[f] = choose_common(np.sum(times, axis=0))
    return schema, facts[0], 2 * sum(filled) < n * n_features, tuple(edges)


def _cut(sketch: Any, begin: int, end: int) -> NDArray[Any]:
    return np.asarray(sketch.sample[:, begin:end])


# --- Blocks -----------------------------------------------------------------------------------------------------------


def read_held_out(client: Client, reader: Any, eval_set: Any) -> Present:
    """The parts of the examples that are not learned from."""
    try:
        X, y = eval_set[0] if isinstance(eval_set, list) and len(eval_set) == 1 else eval_set
    except (ValueError, TypeError):
        raise ValueError("eval_set must be a pair (X, y), or a list of one such pair") from None
    held_out = count_parts(client, reader, divide_parts(X, y, name="eval_set: ")).present
    if not held_out:
        raise ValueError("eval_set has no example with a known label")
    return held_out


def bin_parts(
    client: Client,
    present: Present,
    held_out: Present,
    reading: Reading,
) -> tuple[dict[str, tuple[list[str], list[str]]], Ends, list[Any]]:
    """Bin all parts: the keys of the blocks that each worker is to have, the ends of bins, and what keeps blocks."""
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
    return keys, merged, blocks


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


def validate(
    model: Any, engine: TeamEngine, lesson: Lesson, losses: dict[int, float], past: RuleEnsemble | None
) -> Validation:
    """Judge by minus the mean loss of the examples held out; what that of the training examples was is noted."""

    def judge(rules: RuleEnsemble) -> float:  # noqa: ARG001 (the team knows them)
        losses[engine.n_rules] = engine.training_loss() * lesson.loss_scale
        return -engine.held_out_loss() * lesson.loss_scale

    validation = Validation(judge)
    if model.early_stopping:
        validation.patience = int(model.n_iter_no_change)
    if past is not None:
        validation.add(past)
    return validation
