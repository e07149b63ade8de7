"""The memory of a fit on a GPU: its arrays, and how many bodies there is room to learn side by side."""

from typing import Any

import numpy as np

from pyboomer.columns.binned import MISSING
from pyboomer.columns.device import copy_to_host
from pyboomer.engine.cuda.plan import JOINT, LABELS, LARGEST_SYSTEM, Plan, Scales
from pyboomer.engine.protocol import Task
from pyboomer.losses.compiled_joint import list_known
from pyboomer.losses.loss import Loss
from pyboomer.losses.truth import pad_signs, pad_weight

Shapes = dict[str, tuple[Any, Any]]  # shape and dtype of each array
USUAL = 0.5  # share of the examples from which on a bin is not summed
SPARE = 0.9  # share of the free memory that bodies may be learned in
VECTORS = 8  # of a head, as in the kernels


def list_of_a_body(plan: Plan, l1: float) -> Shapes:
    """What each body that is being learned has of its own: the pointers of `State`."""
    f, b, k, tiles = plan.n_features, plan.n_bins, plan.k, -(-plan.k // LABELS)
    return {
        "entries": ((2, plan.sample_pitch), np.uint64),
        "codes": ((plan.n_words, plan.sample_pitch), np.uint32),
        "bins": ((f, b, plan.pitch), np.int64),
        "totals": (plan.pitch, np.int64),
        "parts": ((3 * tiles if plan.outer and l1 > 0 else tiles) * f * b * 2, np.float64),
        "rates": (2 * f * b, np.float64),
        "occupied": ((f, 4), np.uint64),
        "candidates": ((f, 4), np.uint64),
        "bin_weight": ((f, b), np.int64),
        "present_weight": (f, np.int64),
        "gains": (k, np.float64),
        "chosen": (k, np.int32),
        "covered": (plan.n, np.uint32),
    }


def list_of_all(plan: Plan, row_blocks: int, n_warps: int, n_vectors: int) -> Shapes:
    """What all rules share, and is not copied from the host."""
    n, k, rules = plan.n, plan.k, plan.n_ahead
    arrays: Shapes = {
        "row_codes": ((n, plan.row_pitch), np.uint8),
        "gradient": ((n, plan.stride), np.float32),
        "curvature": ((n, plan.stride), np.float32),
        "masks": ((-(-plan.per_round // 32), n), np.uint32),
        "tables": ((-(-plan.per_round // 4), 16, k), np.float64),
        "draws": ((plan.longest, rules, plan.n_features), np.int32),
        "sums": (3 * k + 1, np.int64),
        "vectors": ((VECTORS, k), np.float64),
        "dots": (n if plan.outer else 0, np.float64),
        "products": (k * k if plan.outer and k <= LARGEST_SYSTEM else k, np.int64),
        "out_size": (rules, np.int32),
        "out_body": ((rules, plan.longest, 4), np.float64),
        "out_labels": ((rules, k), np.int32),
        "out_count": (rules, np.int32),
        "out_scores": ((rules, k), np.float64),
        "out_facts": ((rules, 2), np.float64),
        "scratch": (n_warps * (2 * n_vectors + k) if plan.loss == JOINT else 0, np.float64),
        "losses": (row_blocks, np.float64),
    }
    if plan.draws_labels:
        arrays["label_draws"] = ((rules, max(plan.n_labels, 1)), np.int32)
    return arrays


def list_copied(task: Task, loss: Loss, plan: Plan, scales: Scales) -> tuple[dict[str, Any], float]:
    """What is copied from the host, apart from scores; and the limit of these by the joint loss."""
    label_weight, limit = task.label_weight, 0.0
    if label_weight is not None and (label_weight == 1).all():
        label_weight = None
    signs = pad_signs(task.Y, None if label_weight is None else label_weight > 0)[:, : plan.k]
    copied: dict[str, Any] = {
        "codes": task.columns.codes,
        "nominal": task.columns.nominal.astype(np.int8),
        "usual": _find_usual(task.columns.codes),
        "weight": task.weight.astype(np.float64),
        "signs": signs,
        "g_scale": scales.g.astype(np.float32),
        "h_scale": scales.h.astype(np.float32),
        "unit": scales.unit,
    }
    if len(pad_weight(task.Y.shape, label_weight)) > 0:
        assert label_weight is not None
        copied["label_weight"] = label_weight.astype(np.float32)
    if plan.loss == JOINT:
        assert loss.known is not None
        known = list_known(loss.known, signs)
        limit = float(known.limit)
        copied |= {
            "factor": known.factor,
            "vector_offsets": known.by_vector.offsets.astype(np.int64),
            "vector_places": known.by_vector.places.astype(np.int32),
            "label_offsets": known.by_label.offsets.astype(np.int64),
            "label_places": known.by_label.places.astype(np.int32),
            "settled": (known.own >= 0).astype(np.uint8),
        }
    return copied, limit


def _find_usual(codes: np.ndarray) -> np.ndarray:
    """The bin of each feature that more than half of the examples are in, as far as some of them tell; or -1."""
    some = copy_to_host(codes[:, :: max(1, codes.shape[1] // 4096)])
    usual = np.full(len(codes), -1, dtype=np.int32)
    for f, own in enumerate(some):
        times = np.bincount(own, minlength=MISSING + 1)
        if times.max() > USUAL * len(own):
            usual[f] = times.argmax()
    return usual


def count_bytes(shapes: Shapes) -> int:
    """The memory that some arrays take."""
    return sum(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize for shape, dtype in shapes.values())


def count_bodies(plan: Plan, free: int, needed: int, of_a_body: int) -> int:
    """How many bodies are learned side by side: those of a round, or as many as there is memory for."""
    if needed + of_a_body > free:
        f = plan.n_features
        raise MemoryError(
            f"{plan.n} examples, {plan.n_columns} features and {plan.k} labels need "
            f"{(needed + of_a_body) / 1e9:.1f} GB of the GPU's memory, of which {free / 1e9:.1f} GB are free: "
            f"about N (2 L + 17 K + 24) + S (F + 16) + 8 F B (2 K + 1) bytes, with F = {f} features drawn, "
            f'samples of S = {plan.n_sample} examples and B = {plan.n_bins} bins; set device="cpu"'
        )
    return max(1, min(plan.per_round, int(SPARE * free - needed) // of_a_body))
