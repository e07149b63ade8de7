"""The plan of a fit on a GPU: what is learned, as kernels number it, how blocks share it, and how terms are scaled."""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from pyboomer.engine.cpu.state import choose_layout
from pyboomer.engine.protocol import Settings, Task
from pyboomer.engine.sampling import count_examples, count_features, count_labels
from pyboomer.engine.search.plan import is_single
from pyboomer.engine.statistics import Outer
from pyboomer.losses.compiled import COMPILED, EXAMPLE_WISE, LABEL_WISE, NOT_COMPILED, SQUARED
from pyboomer.losses.joint import Preparation
from pyboomer.losses.loss import Loss

JOINT = NOT_COMPILED + 1  # the number of the joint loss in the kernels
MULTI, SINGLE, PARTIAL = range(3)
EVERYONE, DRAWN, LISTED = range(3)  # where samples come from: all examples, drawn on the device, listed by the host
LABELS = 32  # whose ratings a block finds, and whose sums of a head
WORD = 4  # features whose bins are in a word, and examples whose words are read at once
SECTOR = 8  # numbers of statistics that memory reads at once
LARGEST_SYSTEM = 48  # labels up to which Eq. 16 is solved by elimination, as in the kernels
LONGEST = 1024  # conditions of a rule
RULES = 256  # that are drawn for and read back at once
ROOM = 2**26  # bytes of features drawn ahead
TERM = 25  # bits of a term of a histogram: a little more than its statistics have, and 64 of them fit 32 bits
OF_WEIGHTS = 22  # bits of a weight in it, of which all terms may be the largest
OF_SCORES = 36  # bits behind the point, of a score in the range of targets: sums are exact as long as 53 bits hold them
BEYOND = 10  # bits that sums of gradients may have beyond what the statistics at the beginning of a round can reach


def number_loss(loss: Loss) -> int:
    """Which loss of the kernels it is; `NOT_COMPILED` for none, see `losses.compiled`."""
    if isinstance(loss.prepare, Preparation):
        return JOINT if loss.known is not None else LABEL_WISE
    return COMPILED.get(loss, NOT_COMPILED)


@dataclass(frozen=True)
class Tiling:
    """How blocks share the sums over bins: some columns of some features each, as shared memory has room for."""

    tile: int  # columns of a block
    n_tiles: int
    group: int  # words of four features each
    n_groups: int
    shared: int  # bytes


@dataclass(frozen=True)
class Plan:
    """See the module's docstring."""

    n: int
    k: int
    loss: int
    n_columns: int  # features that there are
    n_features: int  # drawn for a refinement
    n_bins: int
    tiling: Tiling
    sampling: int
    n_sample: int
    n_labels: int  # drawn for a rule; 0 for one after the other
    longest: int  # conditions of a rule
    outer: bool  # whether the Hessian is diag(a) - b b^T
    iterates: bool  # whether heads take conjugate gradients
    head: int
    head_size: int
    head_share: float
    per_round: int  # rules, at most
    n_ahead: int  # rules that there are draws and results of

    @property
    def draws_labels(self) -> bool:
        """Whether a rule is about labels that are drawn."""
        return self.n_labels < self.k

    @property
    def span(self) -> int:
        """Lanes that have a label each, of an example."""
        return next(lanes for lanes in (4, 8, 16, LABELS) if lanes >= self.k or lanes == LABELS)

    @property
    def n_words(self) -> int:
        """Words that have the bins of an example."""
        return -(-self.n_features // WORD)

    @property
    def sample_pitch(self) -> int:
        """The size of a sample, rounded up to what is read at once."""
        return -(-self.n_sample // WORD) * WORD

    @property
    def row_pitch(self) -> int:
        """Bytes between the bins of two examples."""
        return -(-self.n_columns // 32) * 32

    @property
    def stride(self) -> int:
        """Numbers between two rows of statistics."""
        return -(-self.k // SECTOR) * SECTOR

    @property
    def pitch(self) -> int:
        """Columns of the sums over bins."""
        return -(-(2 * self.k + 1) // SECTOR) * SECTOR


def make_plan(task: Task, settings: Settings, n_bins: int, shared: int) -> Plan:
    """Decide what does not change while rules are learned; `shared` are the bytes of memory that a block may share."""
    n, k = task.Y.shape
    n_columns = len(task.columns.codes)
    n_choices = n_columns - len(task.fixed_features)
    n_features = min(count_features(settings.max_features, n_choices), n_choices) + len(task.fixed_features)
    n_labels = count_labels(settings.max_labels, k)
    sampling, n_sample = EVERYONE, n
    if settings.bootstrap:
        n_sample = count_examples(settings.max_samples, n, settings.sampling == "with-replacement")
        sampling = LISTED if len(task.strata.ends) else DRAWN
    longest = max(1, min(n if settings.max_conditions is None else int(settings.max_conditions), n, LONGEST))
    single = is_single(settings.head, k)
    outer = isinstance(choose_layout(settings.loss, k, single), Outer)
    head, size, share = SINGLE if single else MULTI, max(n_labels, 1), 0.0
    if not single and settings.head != "multi":
        if isinstance(settings.head, Integral):
            size = min(int(settings.head), size)
        else:
            share = float(settings.head)
        head = PARTIAL if size < max(n_labels, 1) or share > 0 else MULTI
    per_round = int(settings.rules_per_round)
    return Plan(
        n=n,
        k=k,
        loss=number_loss(settings.loss),
        n_columns=n_columns,
        n_features=n_features,
        n_bins=n_bins,
        tiling=_share_bins(n_features, n_bins, 2 * k + 1, shared),
        sampling=sampling,
        n_sample=n_sample,
        n_labels=n_labels,
        longest=longest,
        outer=outer,
        iterates=outer and k > LARGEST_SYSTEM,
        head=head,
        head_size=size,
        head_share=share,
        per_round=per_round,
        n_ahead=max(per_round, min(RULES, ROOM // (4 * n_features * longest))),
    )


def _share_bins(n_features: int, n_bins: int, n_columns: int, shared: int) -> Tiling:
    """What takes the fewest additions, and the fewest examples read again for other features."""

    def share(tile: int) -> Tiling:
        words = -(-n_features // WORD)
        of_word = 4 * n_bins * WORD * tile + 8  # and what is skipped
        n_groups = -(-words // max(1, min(words, shared // of_word)))
        group = -(-words // n_groups)  # of about the same size
        return Tiling(tile, -(-n_columns // tile), group, n_groups, group * of_word)

    def rate(tiling: Tiling) -> float:
        of_group = tiling.group * WORD * tiling.tile / 32 + 4  # 4: to read an example takes as long as 4 additions
        return tiling.n_tiles * tiling.n_groups * of_group

    tilings = [share(tile) for tile in (8, 16, 32)]
    return min((tiling for tiling in tilings if tiling.shared <= shared or tiling.tile == 8), key=rate)


@dataclass(frozen=True)
class Scales:
    """The powers of 2 by which terms become whole numbers that fit 32 bits, and their sums 64."""

    g: np.ndarray  # (K,) of gradients
    h: np.ndarray  # (K,) of curvatures
    weight: float
    head: float  # what sums over all examples are multiplied with besides
    product: float  # of conjugate gradients
    unit: np.ndarray  # (K,) that scores are multiples of, so that their sums are exact


def find_scales(task: Task, settings: Settings, loss: int) -> Scales:
    """Scales that follow from the largest statistics that the loss can have."""
    n, k = task.Y.shape
    heaviest = float(task.weight.max(initial=0.0)) or 1.0
    of_labels = np.ones(k)
    if task.label_weight is not None:
        of_labels = np.maximum(task.label_weight.max(axis=0, initial=0.0), 1e-300)
    g, h, far = of_labels.copy(), of_labels / 4, np.ones(k)
    if loss == EXAMPLE_WISE:
        g, h = np.ones(k), np.ones(k)
    elif loss == SQUARED:
        low, high = task.Y.min(axis=0), task.Y.max(axis=0)
        far = 4 * (high - low)  # eight times half the range
        if settings.l1 > 0:  # the default rule may be 0
            far = np.maximum(far, np.maximum(np.abs(low), np.abs(high)))
        far = np.where(far > 0, far, 1.0)
        g, h = of_labels * far, of_labels

    def find_power(bits: int, bound: Any) -> Any:
        return 2.0 ** np.floor(bits - np.log2(bound * heaviest))

    return Scales(
        g=find_power(TERM, g),
        h=find_power(TERM, h),
        weight=float(find_power(OF_WEIGHTS, 1.0)),
        head=2.0 ** math.floor(62 - TERM - BEYOND - math.log2(n)),
        product=2.0 ** math.floor(62 - math.log2(max(float(task.weight.sum()), 1e-300))),
        unit=2.0 ** (np.floor(np.log2(far)) - OF_SCORES),
    )


def round_scores(scores: np.ndarray, scales: Scales) -> np.ndarray:
    """Scores as multiples of the unit."""
    return np.asarray(np.rint(scores / scales.unit) * scales.unit)
