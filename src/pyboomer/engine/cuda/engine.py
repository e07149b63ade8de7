"""The engine of a GPU: Algorithm 1 in kernels that learn the bodies of a round side by side, and then head by head.

All decisions are made on the device, see `kernels`: what is drawn there, summed over bins, rated, narrowed, solved and
applied is the same as on the host, see `engine.search`. Sums are of whole numbers, so that no run differs from another.
The host draws features and labels ahead, records the launches of a round once for each size, and reads back many rules
at a time.

The bodies of a round are learned in batches, as many at once as there is memory for; a batch gets its heads before the
next one begins. Nothing depends on the batches, as statistics do not change before the round ends.
"""

from typing import Any

import numpy as np

from pyboomer.compiling.device import Device, Launch, find_device, find_fields, pack_fit
from pyboomer.engine import rounds
from pyboomer.engine.cuda.default_rule import learn_default_rule
from pyboomer.engine.cuda.launches import THREADS, Launches
from pyboomer.engine.cuda.memory import count_bodies, count_bytes, list_copied, list_of_a_body, list_of_all
from pyboomer.engine.cuda.plan import LISTED, find_scales, make_plan, number_loss, round_scores
from pyboomer.engine.cuda.sources import read_program
from pyboomer.engine.protocol import Chunk, Replay, Settings, Task
from pyboomer.engine.sampling import draw_examples, fill_with_draws, fill_with_labels, make_draw
from pyboomer.losses.compiled import BEGIN

AT_ONCE = 16  # refinements that are launched without a look whether there will be as many
STEPS = 8  # refinements, or steps of conjugate gradients, between two looks


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
        self.scales = find_scales(task, settings, number_loss(settings.loss))
        scores = np.zeros(task.Y.shape)
        if settings.loss in BEGIN:
            scores = round_scores(BEGIN[settings.loss](task.Y), self.scales)
        if replay is None:
            default = learn_default_rule(task, settings, self.scales)
            scores += default.scores
            self.n_rules = 1
            self.chunks.append(default)
        self.first, self.size = rounds.find_round(self.n_rules, settings.rules_per_round)
        if replay is not None:
            replay(scores, 0, self.first)
        self._allocate(scores, self.first < self.n_rules)
        for kernel in ("transpose", "write"):
            self.device.launch(self.launches.over_rows(kernel), self.fit)
        if replay is not None and self.first < self.n_rules:  # statistics are those from before these rules
            pending = np.zeros(task.Y.shape)
            replay(scores, self.first, self.n_rules)
            replay(pending, self.first, self.n_rules)
            self.device.write(self.arrays["scores"], scores)
            self.device.write(self.arrays["pending"], pending)
        self.n_bodies = self.n_added = self.n_read = (
            self.n_rules
        )  # rules that have a body, are in the scores, were read
        self.origin = self.n_rules - self.plan.n_ahead  # the first rule that there are draws for: there are none

    # --- Preparation --------------------------------------------------------------------------------------------------

    def _allocate(self, scores: np.ndarray, amid_a_round: bool) -> None:
        device, task, settings = self.device, self.task, self.settings
        codes = task.columns.codes
        self.plan = plan = make_plan(task, settings, int(codes.max()) + 1, device.most_shared)
        self.launches = Launches(plan, device.n_processors)
        self.features = make_draw(len(codes), plan.n_features - len(task.fixed_features), task.fixed_features)
        self.labels = make_draw(plan.k, max(plan.n_labels, 1))
        scales = self.scales
        copied, limit = list_copied(task, settings.loss, plan, scales)
        copied["scores"] = scores
        n_vectors = len(copied.get("factor", ()))
        n_warps = self.launches.apply().grid[0] * THREADS // 32  # no kernel that is about all rows has more
        shapes = list_of_all(plan, self.launches.row_blocks, n_warps, n_vectors)
        if amid_a_round:
            shapes["pending"] = (scores.shape, np.float64)
        needed = count_bytes(shapes) + sum(array.nbytes for array in copied.values())
        of_a_body = list_of_a_body(plan, settings.l1)
        self.batch = count_bodies(plan, device.count_free(), needed, count_bytes(of_a_body))
        self.arrays = {name: device.put(array) for name, array in copied.items()}
        self.arrays |= {name: device.zeros(*array) for name, array in shapes.items()}

        states = np.zeros(self.batch, dtype=list(find_fields(read_program(), "State")))
        self.of_bodies: dict[str, Any] = {}
        for name, (shape, dtype) in of_a_body.items():
            size = int(np.prod(shape))
            self.of_bodies[name] = device.zeros((self.batch, size), dtype)
            bytes_each = size * np.dtype(dtype).itemsize
            states[name] = device.address(self.of_bodies[name]) + bytes_each * np.arange(self.batch)
        self.arrays["states"] = device.put(states.view(np.int64))
        self.round = np.zeros(1, dtype=list(find_fields(read_program(), "Round")))
        self.arrays["round"] = device.put(self.round.view(np.int64))

        values: dict[str, Any] = {name: 0 for name, _ in find_fields(read_program(), "Fit")}
        values |= {name: device.address(array) for name, array in self.arrays.items() if array.size}
        numbers: dict[str, Any] = {
            "N": plan.n,
            "K": plan.k,
            "L": plan.n_columns,
            "row_pitch": plan.row_pitch,
            "stride": plan.stride,
            "F": plan.n_features,
            "B": plan.n_bins,
            "pitch": plan.pitch,
            "V": n_vectors,
            "n_sample": plan.n_sample,
            "sampling": plan.sampling,
            "n_labels": len(self.labels.drawn),
            "n_ahead": plan.n_ahead,
            "longest": plan.longest,
            "sample_pitch": plan.sample_pitch,
            "n_words": plan.n_words,
            "group": plan.tiling.group,
            "n_groups": plan.tiling.n_groups,
            "loss": plan.loss,
            "span": plan.span,
            "chunk": self.launches.chunk,
            "outer": int(plan.outer),
            "head": plan.head,
            "head_size": plan.head_size,
            "head_share": plan.head_share,
            "seed": int(settings.seed),
            "learning_rate": float(settings.learning_rate),
            "l1": float(settings.l1),
            "l2": float(settings.l2),
            "min_coverage": float(settings.min_coverage),
            "w_scale": scales.weight,
            "head_scale": scales.head,
            "product_scale": scales.product,
            "limit": limit,
        }
        self.values = values | numbers
        self.fit = device.put(pack_fit(read_program(), self.values))
        self.recordings: dict[Any, Any] = {}

    # --- Learning -----------------------------------------------------------------------------------------------------

    def learn(self, count: int) -> None:
        """Learn `count` more rules; the round goes on with the next call, if there are more in it."""
        last = self.n_rules + count
        while self.n_rules < last:
            if self.n_rules == self.n_bodies:
                self._learn_bodies()
            self._fit_heads(min(self.n_bodies, last) - self.n_rules)
            if self.n_rules in (last, self.first + self.size):
                self._run("apply", [self.launches.apply()])
                self.n_added = self.n_rules
        self._read_rules()

    def _learn_bodies(self) -> None:
        """Launch all that it takes to learn the next bodies of the round (Alg. 1, lines 5 and 6)."""
        plan, launches = self.plan, self.launches
        if self.n_rules == self.first + self.size:
            self._begin_round()
        count = min(self.batch, self.first + self.size - self.n_rules)
        if self.n_rules < self.settings.n_rules:  # no more than are wanted
            count = min(count, self.settings.n_rules - self.n_rules)
        if self.n_rules + count > self.origin + plan.n_ahead:
            self._read_rules()
            self._draw_ahead()
        self.round["first"], self.round["size"], self.round["origin"] = self.first, self.size, self.origin
        self.round["begin"] = self.round["n_heads"] = self.n_rules - self.first
        self.round["count"], self.round["n_added"] = count, self.n_added - self.first
        self.device.write(self.arrays["round"], self.round.view(np.int64))
        if plan.sampling == LISTED:
            self._list_samples(count)
        first, step = launches.refine(count, first=True), launches.refine(count, first=False)
        n_steps = min(plan.longest, AT_ONCE if plan.longest <= AT_ONCE else STEPS)
        cover = [launches.over_rows("cover")]
        refine = launches.begin(count) + first + (n_steps - 1) * step
        if plan.longest <= AT_ONCE:  # no look at anything is needed
            self._run(("bodies", count), refine + cover)
        else:
            self._run(("bodies", count), refine)
            while n_steps < plan.longest and not self._ask("states", "State", "done")[:count].all():
                self._draw_further(n_steps + STEPS + 1)
                self._run(("steps", count), STEPS * step)
                n_steps += STEPS
            self._run("cover", cover)
        self.n_bodies = self.n_rules + count

    def _begin_round(self) -> None:
        self.first += self.size
        self.size = rounds.count_rules(self.first, self.settings.rules_per_round)
        if self.values["pending"]:  # these were rules of the round before
            self.values["pending"] = 0
            self.device.write(self.fit, pack_fit(read_program(), self.values))
            self.device.wait()
            del self.arrays["pending"]

    def _fit_heads(self, count: int) -> None:
        """Launch all that it takes to fit the next heads, one after another (Alg. 1, lines 7 and 8)."""
        head, multiply = self.launches.fit_head(), self.launches.multiply()
        if not self.plan.iterates:
            self._run(("heads", count), count * head)
        for _ in range(count if self.plan.iterates else 0):
            self._run("head", head + STEPS * multiply)
            while not self._ask("round", "Round", "solved")[0]:
                self._run("multiplications", STEPS * multiply)
        self.n_rules += count

    def _run(self, name: Any, launches: list[Launch]) -> None:
        """Run some launches, recorded the first time."""
        if name not in self.recordings:
            self.recordings[name] = self.device.record(launches, self.fit)
        self.recordings[name].run()

    def _ask(self, name: str, struct: str, field: str) -> np.ndarray:
        """A field of some structs, once all that was launched has finished."""
        read = self.device.read(self.arrays[name])
        return np.asarray(read.view(list(find_fields(read_program(), struct)))[field])

    # --- Draws --------------------------------------------------------------------------------------------------------

    def _draw_ahead(self) -> None:
        """Draw features and labels for as many rules as there is room for."""
        plan = self.plan
        self.origin, self.n_drawn = self.n_rules, min(plan.longest, AT_ONCE + 1)
        self._draw_features(0, self.n_drawn)
        if plan.draws_labels:
            labels = np.empty((plan.n_ahead, len(self.labels.drawn)), dtype=np.int32)
            for slot in range(plan.n_ahead):
                fill_with_labels(self.settings.seed, self.origin + slot, plan.n_labels == 0, self.labels)
                labels[slot] = self.labels.drawn
            self.device.write(self.arrays["label_draws"], labels)

    def _draw_features(self, first: int, last: int) -> None:
        drawn = np.empty((last - first, self.plan.n_ahead, self.plan.n_features), dtype=np.int32)
        fill_with_draws(self.settings.seed, self.origin, first + 1, self.features, drawn)
        self.device.write(self.arrays["draws"][first:last], drawn)

    def _draw_further(self, n_steps: int) -> None:
        """See that the features of so many refinements are drawn."""
        n_steps = min(n_steps, self.plan.longest)
        if n_steps > self.n_drawn:
            self._draw_features(self.n_drawn, n_steps)
            self.n_drawn = n_steps

    def _list_samples(self, count: int) -> None:
        """Draw samples without replacement, which goes example by example."""
        counts, size = np.empty(self.plan.n), self.plan.n_sample
        for i in range(count):
            draw_examples(self.settings.seed, self.n_rules + i, size, self.task.strata, counts)
            self.device.write(
                self.of_bodies["entries"][i, self.plan.sample_pitch :][:size], np.flatnonzero(counts).astype(np.uint64)
            )

    # --- What training asks for ---------------------------------------------------------------------------------------

    def _read_rules(self) -> None:
        """Read the rules learned since the last time, if there are any."""
        count, start = self.n_rules - self.n_read, self.n_read - self.origin
        if count == 0:
            return

        def read(name: str) -> np.ndarray:
            return self.device.read(self.arrays[name][start : start + count])

        sizes, counts, facts, bodies = read("out_size"), read("out_count"), read("out_facts"), read("out_body")
        labels, scores = read("out_labels"), read("out_scores")
        kept = np.arange(labels.shape[1]) < counts[:, None]
        if self.settings.l1 > 0:  # labels that L1 regularisation leaves out; if none is left: the last one
            nonzero = kept & (scores != 0)
            nonzero[np.arange(count), counts - 1] |= ~nonzero.any(axis=1)
            kept = nonzero
        chunk = Chunk(
            n_conditions=sizes.astype(np.int64),
            conditions=bodies[np.arange(bodies.shape[1]) < sizes[:, None]],
            n_scores=kept.sum(axis=1),
            labels=labels[kept],
            scores=scores[kept],
            coverage=facts[:, 1].copy(),
            gain=facts[:, 0].copy(),
        )
        self.chunks.append(chunk)
        self.n_read = self.n_rules

    def take_rules(self) -> list[Chunk]:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return chunks

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        self.device.launch(self.launches.over_rows("sum_losses"), self.fit)
        return float(self.device.read(self.arrays["losses"]).sum()) / float(self.task.weight.sum())

    def close(self) -> None:
        """Give the memory back."""
        self.device.wait()
        self.recordings.clear()
        self.arrays.clear()
        self.of_bodies.clear()
