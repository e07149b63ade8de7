"""The engine of a GPU: Algorithm 1 in kernels that are launched rule by rule, and never waited for if it can be helped.

All decisions are made on the device, see `kernels`: what is drawn there, summed over bins, rated, narrowed, solved and
applied is the same as in `engine.bins`. Sums are of whole numbers, so that no run differs from another. The host draws
features and labels ahead, records the launches of a rule once, and reads back many rules at a time.
"""

import math
from numbers import Integral
from typing import Any

import numpy as np

from pyboomer.columns.binned import MISSING
from pyboomer.columns.device import copy_to_host
from pyboomer.compiling.device import Device, Launch, find_device, find_fields, pack_fit
from pyboomer.engine.cpu.default_rule import find_default_head, merge_equal
from pyboomer.engine.cpu.ledger import Ledger, choose_layout
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.cuda.sources import read_program
from pyboomer.engine.protocol import Chunk, Replay, Settings, Task
from pyboomer.engine.sampling import (
    count_examples,
    count_features,
    count_labels,
    draw_examples,
    fill_with_draw,
    fill_with_labels,
    make_draw,
)
from pyboomer.engine.search.plan import is_single
from pyboomer.engine.statistics import Outer
from pyboomer.losses.joint import Preparation
from pyboomer.losses.joint_twin import list_known
from pyboomer.losses.loss import Loss
from pyboomer.losses.truth import pad_signs, pad_weight
from pyboomer.losses.twins import BEGIN, EXAMPLE_WISE, LABEL_WISE, NO_TWIN, SQUARED, TWINS

JOINT = NO_TWIN + 1  # the number of the joint loss in the kernels
MULTI, SINGLE, PARTIAL = range(3)
THREADS = 256
BIN_THREADS = 512
LABELS = 32  # whose ratings a block finds
SECTOR = 8  # numbers of statistics that memory reads at once
LARGEST_SYSTEM = 48  # labels up to which Eq. 16 is solved by elimination, as in the kernels
LONGEST = 1024  # conditions of a rule
RULES = 256  # that are read back at once
AT_ONCE = 16  # refinements that are launched without a look whether there will be as many
STEPS = 8  # refinements, or steps of conjugate gradients, between two looks
ROOM = 2**26  # bytes of features drawn ahead
SHARED = 96 * 1024  # bytes of shared memory for sums over bins: two blocks share a multiprocessor
OFTEN = 31  # how many standard deviations more often than on average an example may be drawn
WHOLE = 2.0**31 - 1
BLOCK = 2**14  # examples whose weights are added up at once
USUAL = 0.5  # share of the examples from which on a bin is not summed


def number_loss(loss: Loss) -> int:
    """Which loss of the kernels it is; `NO_TWIN` for none, see `losses.twins`."""
    if isinstance(loss.prepare, Preparation):
        return JOINT if loss.known is not None else LABEL_WISE
    return TWINS.get(loss, NO_TWIN)


class CudaEngine:
    """Learns by bins, on a GPU."""

    def __init__(
        self,
        task: Task,
        settings: Settings,
        replay: Replay | None = None,
        n_rules: int = 0,
        device: Device | None = None,
    ) -> None:
        self.device = find_device(read_program()) if device is None else device
        self.task, self.settings, self.n_rules = task, settings, n_rules
        self.chunks: list[Chunk] = []
        scores = np.zeros(task.Y.shape)
        if settings.loss in BEGIN:
            scores[:] = BEGIN[settings.loss](task.Y)
        if replay is None:
            head, gain = self._learn_default_rule()
            scores += head
            self.n_rules = 1
            self.chunks.append(_make_default_chunk(head, gain, float(task.weight.sum())))
        else:
            replay(scores, 0, n_rules)
        self._plan()
        self._allocate(scores)
        self.device.launch(self._over_rows("write"), self.fit)

    # --- Preparation --------------------------------------------------------------------------------------------------

    def _learn_default_rule(self) -> tuple[np.ndarray, float]:
        threads = Threads(self.settings.n_threads)
        ledger = Ledger(_condense(self.task, self.settings.loss), self.settings.loss, False, threads)
        found = find_default_head(ledger, self.settings)
        threads.close()
        return found

    def _plan(self) -> None:
        """Sizes of all that is done."""
        task, settings = self.task, self.settings
        n, k = task.Y.shape
        codes = task.columns.codes
        fixed = task.fixed_features
        self.features = make_draw(len(codes), count_features(settings.max_features, len(codes) - len(fixed)), fixed)
        n_drawn = count_labels(settings.max_labels, k)
        self.labels = make_draw(k, max(n_drawn, 1))
        self.draws_labels, self.in_turn = n_drawn < k, n_drawn == 0
        self.n_draws = 0
        if settings.bootstrap:
            self.n_draws = count_examples(settings.max_samples, n, settings.sampling == "with-replacement")
        self.draws_on_host = self.n_draws > 0 and len(task.strata.ends) > 0
        limit = n if settings.max_conditions is None else int(settings.max_conditions)
        self.longest = max(1, min(limit, n, LONGEST))
        self.n_bins = int(codes.max()) + 1
        single = is_single(settings.head, k)
        self.outer = isinstance(choose_layout(settings.loss, k, single), Outer)
        self.iterates = self.outer and k > LARGEST_SYSTEM
        self.span = 8 if k <= 4 * LABELS else 32  # columns that a warp sums
        self.head = SINGLE if single else MULTI
        m = len(self.labels.drawn) if self.draws_labels else k
        self.head_size, self.head_share = m, 0.0
        if not single and settings.head != "multi":
            if isinstance(settings.head, Integral):
                self.head_size = min(int(settings.head), m)
            else:
                self.head_share = float(settings.head)
            self.head = PARTIAL if self.head_size < m or self.head_share > 0 else MULTI
        f = len(self.features.drawn)
        self.pitch = -(-(2 * k + 1) // 32) * 32
        self.n_ahead = max(1, min(RULES, ROOM // (4 * f * self.longest)))
        self._plan_bins(f, k)

    def _plan_bins(self, n_features: int, n_labels: int) -> None:
        """How many columns and features a block sums: as many as there is shared memory for."""
        room = min(SHARED, self.device.most_shared)
        columns = 2 * n_labels + 1
        for tile in (32, 16, 8):
            left = room // 4 - BIN_THREADS * tile
            self.tile, self.group = tile, min(n_features, left // (self.n_bins * tile + 1))
            if self.group >= min(n_features, 8) and (columns > tile // 2 or tile == 8):
                break
        self.group = max(1, -(-n_features // -(-n_features // max(1, self.group))))  # groups of about the same size
        groups, tiles = -(-n_features // self.group), -(-columns // self.tile)
        self.bin_grid = (max(1, 4 * self.device.n_processors // (groups * tiles)), tiles, groups)
        self.bin_shared = 4 * (self.group * (self.n_bins * self.tile + 1) + BIN_THREADS * self.tile)

    def _find_scales(self) -> tuple[np.ndarray, np.ndarray, float, float, float]:
        """The powers of 2 by which terms become whole numbers that fit 32 bits, and their sums 64."""
        task, n = self.task, len(self.task.Y)
        k = task.Y.shape[1]
        heaviest = float(task.weight.max(initial=0.0)) or 1.0
        mean = self.n_draws / n
        often = math.ceil(mean + OFTEN * max(1.0, math.sqrt(mean))) if self.n_draws and not self.draws_on_host else 1
        of_labels = np.ones(k)
        if task.label_weight is not None:
            of_labels = np.maximum(task.label_weight.max(axis=0, initial=0.0), 1e-300)
        g, h = of_labels.copy(), of_labels / 4
        if self.loss == EXAMPLE_WISE:
            g, h = np.ones(k), np.ones(k)
        elif self.loss == SQUARED:
            low, high = task.Y.min(axis=0), task.Y.max(axis=0)
            far = 4 * (high - low)  # eight times half the range
            if self.settings.l1 > 0:  # the default rule may be 0
                far = np.maximum(far, np.maximum(np.abs(low), np.abs(high)))
            g, h = of_labels * np.where(far > 0, far, 1.0), of_labels

        def find_power(bound: Any) -> Any:
            return 2.0 ** np.floor(np.log2(WHOLE / (bound * heaviest * often)))

        head_scale = 2.0 ** math.floor(31 + math.log2(often) - math.log2(n))
        product_scale = 2.0 ** math.floor(62 - math.log2(max(float(task.weight.sum()), 1e-300)))
        return find_power(g), find_power(h), float(find_power(1.0)), head_scale, product_scale

    def _allocate(self, scores: np.ndarray) -> None:
        device, task, settings = self.device, self.task, self.settings
        n, k = task.Y.shape
        codes, nominal = task.columns.codes, task.columns.nominal
        f, b, rules = len(self.features.drawn), self.n_bins, self.n_ahead
        self.loss = number_loss(settings.loss)
        label_weight = task.label_weight
        if label_weight is not None and (label_weight == 1).all():
            label_weight = None
        signs = pad_signs(task.Y, None if label_weight is None else label_weight > 0)[:, :k]
        weighted = len(pad_weight(task.Y.shape, label_weight)) > 0
        g_scale, h_scale, w_scale, head_scale, product_scale = self._find_scales()
        tiles = -(-k // LABELS)
        n_parts = (3 * tiles if self.outer and settings.l1 > 0 else tiles) * f * b * 2
        stride = -(-k // SECTOR) * SECTOR
        joint = self._list_known(signs) if self.loss == JOINT else {}
        n_vectors = len(joint["factor"]) if joint else 0
        self.row_blocks = min(-(-n // THREADS), 8 * device.n_processors)
        arrays: dict[str, tuple[Any, Any]] = {  # what is not copied from the host: shape and dtype
            "gradient": ((n, stride), np.float32),
            "curvature": ((n, stride), np.float32),
            "counts": (n, np.uint32),
            "rows": ((2, n), np.uint32),
            "factors": ((2, n), np.float32),
            "step_codes": ((f, n), np.uint8),
            "draws": ((self.longest, rules, f), np.int32),
            "bins": ((f, b, self.pitch), np.int64),
            "totals": (self.pitch, np.int64),
            "parts": (n_parts, np.float64),
            "rates": (2 * f * b, np.float64),
            "occupied": ((f, 4), np.uint64),
            "candidates": ((f, 4), np.uint64),
            "bin_weight": ((f, b), np.int64),
            "present_weight": (f, np.int64),
            "gains": (k, np.float64),
            "labels": (k, np.int32),
            "covered": (n, np.uint32),
            "sums": (2 * k + 1, np.int64),
            "vectors": ((6, k), np.float64),
            "dots": (n if self.iterates else 0, np.float64),
            "products": (k * k if self.outer and k <= LARGEST_SYSTEM else k, np.int64),
            "out_size": (rules, np.int32),
            "out_body": ((rules, self.longest, 4), np.float64),
            "out_labels": ((rules, k), np.int32),
            "out_count": (rules, np.int32),
            "out_scores": ((rules, k), np.float64),
            "out_facts": ((rules, 2), np.float64),
            "scratch": (self.row_blocks * (THREADS // 32) * (2 * n_vectors + k) if joint else 0, np.float64),
            "losses": (self.row_blocks, np.float64),
        }
        if self.draws_labels:
            arrays["label_draws"] = ((rules, len(self.labels.drawn)), np.int32)
        copied = {
            "codes": codes,
            "nominal": nominal.astype(np.int8),
            "usual": _find_usual(codes),
            "weight": task.weight.astype(np.float64),
            "signs": signs,
            "scores": scores,
            "g_scale": g_scale.astype(np.float32),
            "h_scale": h_scale.astype(np.float32),
            **joint,
        }
        if weighted:
            assert label_weight is not None
            copied["label_weight"] = label_weight.astype(np.float32)
        made = sum(_count_bytes(*array) for array in arrays.values())
        self._check_memory(made + sum(array.nbytes for array in copied.values()))
        self.arrays = {name: device.put(array) for name, array in copied.items()}
        self.arrays |= {name: device.zeros(*array) for name, array in arrays.items()}
        state = np.zeros(1, dtype=list(find_fields(read_program(), "State")))
        state["rule"] = self.n_rules - 1
        self.arrays["state"] = device.put(state.view(np.int32))
        self.places = {name: i for i, (name, kind) in enumerate(find_fields(read_program(), "State")) if kind == "i4"}
        values: dict[str, Any] = {name: 0 for name, _ in find_fields(read_program(), "Fit")}
        values |= {name: device.address(array) for name, array in self.arrays.items() if array.size}
        numbers: dict[str, Any] = {
            "N": n,
            "K": k,
            "stride": stride,
            "F": f,
            "B": b,
            "pitch": self.pitch,
            "V": n_vectors,
            "n_draws": -1 if self.draws_on_host else self.n_draws,
            "n_labels": len(self.labels.drawn),
            "n_ahead": self.n_ahead,
            "longest": self.longest,
            "group": self.group,
            "first": 0,
            "loss": self.loss,
            "outer": int(self.outer),
            "span": self.span,
            "head": self.head,
            "head_size": self.head_size,
            "head_share": self.head_share,
            "seed": int(settings.seed),
            "learning_rate": float(settings.learning_rate),
            "l1": float(settings.l1),
            "l2": float(settings.l2),
            "min_coverage": float(settings.min_coverage),
            "w_scale": w_scale,
            "head_scale": head_scale,
            "product_scale": product_scale,
            "limit": self.limit if joint else 0.0,
        }
        self.values = values | numbers
        self.fit = device.put(pack_fit(read_program(), self.values))
        self.recordings: dict[str, Any] = {}

    def _list_known(self, signs: np.ndarray) -> dict[str, np.ndarray]:
        """What the joint loss knows of the label vectors."""
        assert self.settings.loss.known is not None
        known = list_known(self.settings.loss.known, signs)
        self.limit = float(known.limit)
        return {
            "factor": known.factor,
            "vector_offsets": known.by_vector.offsets.astype(np.int64),
            "vector_places": known.by_vector.places.astype(np.int32),
            "label_offsets": known.by_label.offsets.astype(np.int64),
            "label_places": known.by_label.places.astype(np.int32),
            "settled": (known.own >= 0).astype(np.uint8),
        }

    def _check_memory(self, needed: int) -> None:
        free = self.device.count_free()
        if needed > free:
            n, k = self.task.Y.shape
            f = len(self.features.drawn)
            raise MemoryError(
                f"{n} examples, {len(self.task.columns.codes)} features and {k} labels need {needed / 1e9:.1f} GB of "
                f"the GPU's memory, of which {free / 1e9:.1f} GB are free: about N (L + F + 17 K + 40) "
                f'+ 8 F B (2 K + 1) bytes, with F = {f} features drawn and B = {self.n_bins} bins; set device="cpu"'
            )

    # --- Launches -----------------------------------------------------------------------------------------------------

    def _over_rows(self, kernel: str) -> Launch:
        return Launch(kernel, (self.row_blocks,), THREADS)

    def _list_begin(self) -> list[Launch]:
        launches = [Launch("begin", (1,), THREADS)]
        if self.n_draws and not self.draws_on_host:
            blocks = min(-(-self.n_draws // THREADS), 8 * self.device.n_processors)
            launches.append(Launch("draw", (blocks,), THREADS))
        return launches

    def _list_step(self, first: bool) -> list[Launch]:
        """A refinement (Alg. 3)."""
        f, k = len(self.features.drawn), self.task.Y.shape[1]
        rate = Launch("rate", (f, -(-k // LABELS)), THREADS)
        if first and self.head == PARTIAL:
            rate = Launch("rate_some", (f * self.n_bins,), THREADS, 8 * k)
        sums = Launch(f"sum_bins_{self.tile}", self.bin_grid, BIN_THREADS, self.bin_shared)
        return [sums, rate, self._over_rows("narrow")]

    def _list_head(self) -> list[Launch]:
        """The sums of the head (Alg. 2)."""
        tiles = -(-(2 * self.task.Y.shape[1] + 1) // self.span)
        launches = [self._over_rows("cover"), Launch("sum_covered", (self._divide(tiles), tiles), THREADS)]
        if self.outer and not self.iterates:
            launches.append(Launch("solve_system", (self._divide(1),), THREADS))
        return launches

    def _list_multiplication(self) -> list[Launch]:
        """A step of conjugate gradients."""
        tiles = -(-self.task.Y.shape[1] // self.span)
        return [self._over_rows("multiply_rows"), Launch("multiply_columns", (self._divide(tiles), tiles), THREADS)]

    def _divide(self, n_tiles: int) -> int:
        """Among how many blocks the examples are divided, if there are so many for the columns."""
        most = -(-len(self.task.Y) // 64)
        return max(1, min(most, 8 * self.device.n_processors // n_tiles))

    def _run(self, name: str, launches: list[Launch]) -> None:
        """Run some launches, recorded the first time."""
        if name not in self.recordings:
            self.recordings[name] = self.device.record(launches, self.fit)
        self.recordings[name].run()

    def _ask(self, field: str) -> int:
        """A number of the state, once all that was launched has finished."""
        return int(self.device.read(self.arrays["state"])[self.places[field]])

    # --- Learning -----------------------------------------------------------------------------------------------------

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        while count > 0:
            some = min(count, self.n_ahead)
            self._begin_chunk(some)
            for slot in range(some):
                self._learn_rule(slot)
                self.n_rules += 1
            self.chunks.append(self._read_rules(some))
            count -= some

    def _begin_chunk(self, count: int) -> None:
        self.device.wait()  # what is drawn for rules before is no longer needed
        self.values["first"] = self.n_rules
        self.device.write(self.fit, pack_fit(read_program(), self.values))
        self.n_drawn = min(self.longest, AT_ONCE + 1)
        drawn = np.zeros((self.n_drawn, self.n_ahead, len(self.features.drawn)), dtype=np.int32)
        for slot in range(count):
            for step in range(self.n_drawn):
                drawn[step, slot] = self._draw_features(slot, step)
        self.device.write(self.arrays["draws"][: self.n_drawn], drawn)
        if self.draws_labels:
            labels = np.empty((count, len(self.labels.drawn)), dtype=np.int32)
            for slot in range(count):
                fill_with_labels(self.settings.seed, self.n_rules + slot, self.in_turn, self.labels)
                labels[slot] = self.labels.drawn
            self.device.write(self.arrays["label_draws"][:count], labels)

    def _draw_features(self, slot: int, step: int) -> np.ndarray:
        """Draw the features of a refinement of a rule."""
        fill_with_draw(self.settings.seed, self.values["first"] + slot, step + 1, self.features)
        return self.features.drawn

    def _learn_rule(self, slot: int) -> None:
        """Launch all that it takes to learn a rule (Alg. 1, lines 4 to 8)."""
        begin, sample, apply = self._list_begin(), self._over_rows("sample"), self._over_rows("apply")
        first, step, head = self._list_step(True), self._list_step(False), self._list_head()
        at_once = min(self.longest, AT_ONCE if self.longest <= AT_ONCE else STEPS)
        refine = first + (at_once - 1) * step
        if self.draws_on_host:
            self._run("begin", begin)
            self._draw_sample(self.n_rules)
            begin = []
        if self.longest <= AT_ONCE and not self.iterates:  # no look at anything is needed
            self._run("rule", [*begin, sample, *refine, *head, apply])
            return
        self._run("body", [*begin, sample, *refine])
        n_steps = at_once
        while n_steps < self.longest and not self._ask("done"):
            self._draw_further(slot, n_steps + STEPS + 1)
            self._run("steps", STEPS * step)
            n_steps += STEPS
        self._run("head", [*head, *(STEPS * self._list_multiplication() if self.iterates else [])])
        while self.iterates and not self._ask("solved"):
            self._run("multiplications", STEPS * self._list_multiplication())
        self._run("apply", [apply])

    def _draw_further(self, slot: int, n_steps: int) -> None:
        """See that the features of so many refinements of a rule are drawn."""
        for step in range(max(n_steps - STEPS, self.n_drawn), min(n_steps, self.longest)):
            self.device.write(self.arrays["draws"][step, slot], self._draw_features(slot, step).astype(np.int32))

    def _draw_sample(self, rule: int) -> None:
        """Draw a sample without replacement, which goes example by example."""
        counts = np.empty(len(self.task.Y))
        draw_examples(self.settings.seed, rule, self.n_draws, self.task.strata, counts)
        self.device.write(self.arrays["counts"], counts.astype(np.uint32))

    def _read_rules(self, count: int) -> Chunk:
        """What was learned since the last time."""

        def read(name: str) -> np.ndarray:
            return self.device.read(self.arrays[name][:count])

        sizes, counts, facts, bodies = read("out_size"), read("out_count"), read("out_facts"), read("out_body")
        labels, scores = read("out_labels"), read("out_scores")
        kept = np.arange(labels.shape[1]) < counts[:, None]
        if self.settings.l1 > 0:  # labels that L1 regularisation leaves out; if none is left: the last one
            nonzero = kept & (scores != 0)
            nonzero[np.arange(count), counts - 1] |= ~nonzero.any(axis=1)
            kept = nonzero
        return Chunk(
            n_conditions=sizes.astype(np.int64),
            conditions=bodies[np.arange(bodies.shape[1]) < sizes[:, None]],
            n_scores=kept.sum(axis=1),
            labels=labels[kept],
            scores=scores[kept],
            coverage=facts[:, 1].copy(),
            gain=facts[:, 0].copy(),
        )

    # --- What training asks for ---------------------------------------------------------------------------------------

    def take_rules(self) -> list[Chunk]:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return chunks

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        self.device.launch(self._over_rows("sum_losses"), self.fit)
        return float(self.device.read(self.arrays["losses"]).sum()) / float(self.task.weight.sum())

    def close(self) -> None:
        """Give the memory back."""
        self.device.wait()
        self.recordings.clear()
        self.arrays.clear()


def _condense(task: Task, loss: Loss) -> Task:
    """A task of few examples that has the same default rule: where each label is on its own, sums of weights do."""
    number, (n, k) = number_loss(loss), task.Y.shape
    if number not in (LABEL_WISE, SQUARED):
        return merge_equal(task)
    total, sums = np.zeros((2, k))  # of the weights, and of the weights of relevant labels or of targets
    for start in range(0, n, BLOCK):
        Y, weight = task.Y[start : start + BLOCK], task.weight[start : start + BLOCK, None]
        if task.label_weight is not None:
            weight = weight * task.label_weight[start : start + BLOCK]
        total += (weight * np.ones(k)).sum(axis=0)
        sums += (weight * (Y > 0 if number == LABEL_WISE else Y)).sum(axis=0)
    if number == LABEL_WISE:  # an example that has all labels, and one that has none
        signs = np.array([[1], [-1]], dtype=np.int8).repeat(k, axis=1)
        return Task(None, signs, np.ones(2), np.stack([sums, np.maximum(total - sums, 0.0)]))
    return Task(None, (sums / np.where(total > 0, total, 1.0))[None], np.ones(1), total[None])


def _make_default_chunk(head: np.ndarray, gain: float, weight: float) -> Chunk:
    return Chunk(
        n_conditions=np.zeros(1, dtype=np.int64),
        conditions=np.empty((0, 4)),
        n_scores=np.array([len(head)]),
        labels=np.arange(len(head), dtype=np.int32),
        scores=np.array(head),
        coverage=np.array([weight]),
        gain=np.array([gain]),
    )


def _find_usual(codes: np.ndarray) -> np.ndarray:
    """The bin of each feature that more than half of the examples are in, as far as some of them tell; or -1."""
    some = copy_to_host(codes[:, :: max(1, codes.shape[1] // 4096)])
    usual = np.full(len(codes), -1, dtype=np.int32)
    for f, own in enumerate(some):
        times = np.bincount(own, minlength=MISSING + 1)
        if times.max() > USUAL * len(own):
            usual[f] = times.argmax()
    return usual


def _count_bytes(shape: Any, dtype: Any) -> int:
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
