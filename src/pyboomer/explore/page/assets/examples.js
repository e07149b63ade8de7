// --- The view of an example: the rules that cover it, and how they add up to each score ------------------------------

const SHOWN_VALUES = 60;

function viewExamples(model) {
  const node = element("section", {}, element("h2", {}, "Examples"));
  if (!model.examples?.rows.length) {
    node.append(
      element(
        "p",
        { class: "note" },
        "This page has no examples: data are needed. Give them when the page is made, ",
        element("code", {}, "boomer explore model.json --data …"),
        " or ",
        element("code", {}, "clf.to_html(X=X, y=y)"),
        ".",
      ),
    );
    return { node, show() {} };
  }
  const state = { n: 0, label: null, all: false, allScores: false };
  const { rows } = model.examples;
  const parts = Object.fromEntries(
    ["chooser", "verdict", "scores", "steps", "values"].map((name) => [name, element("div", { class: name })]),
  );
  node.append(
    parts.chooser,
    element(
      "div",
      { class: "split example" },
      element("div", { class: "side" }, parts.verdict, parts.scores, parts.values),
      element("div", { class: "content" }, parts.steps),
    ),
  );

  const go = (n) => {
    location.hash = `example/${rows[Math.min(Math.max(n, 0), rows.length - 1)]}`;
  };
  const picker = choice(
    "example-pick",
    "Row",
    rows.map((row, n) => [n, formatRow(model, n, row)]),
    (n) => go(Number(n)),
  );
  const previous = button("←", () => go(state.n - 1), { class: "quiet", "aria-label": "Previous example" });
  const next = button("→", () => go(state.n + 1), { class: "quiet", "aria-label": "Next example" });
  const reset = button(
    "Switch all rules on",
    () => {
      model.off.clear();
      update();
      announce("All rules are on.");
    },
    { class: "quiet", id: "all-on" },
  );
  const nextWrong = button(
    "Next mistake",
    () => {
      const others = [...rows.keys()].map((i) => (state.n + 1 + i) % rows.length);
      const wrong = others.find((n) => isWrong(model, n));
      if (wrong === undefined) announce((nextWrong.textContent = "No mistakes"));
      else go(wrong);
    },
    { class: "quiet", id: "next-mistake" },
  );
  const judged = model.examples.truth !== null && model.kind !== "numbers";
  const offText = element("span", { class: "faint", id: "off-count" });
  fill(parts.chooser, [
    previous,
    picker.field,
    next,
    judged && nextWrong,
    element("span", { class: "faint" }, describeSample(model)),
    offText,
    reset,
  ]);

  function update() {
    const covering = findCovering(model, state.n);
    const before = addScores(model, covering, new Set());
    const scores = addScores(model, covering, model.off);
    const relevant = decode(model, scores);
    const relevantBefore = decode(model, before);
    if (state.label === null) state.label = pickLabel(model, state.n, scores, relevant);
    const changed = [...relevant.keys()].filter((k) => relevant[k] !== relevantBefore[k]);
    picker.select.value = String(state.n);
    previous.disabled = state.n === 0;
    next.disabled = state.n === rows.length - 1;
    offText.textContent = model.off.size ? `${count(model.off.size, "rule")} off` : "";
    reset.hidden = model.off.size === 0;
    const hover = showVerdict(model, state, parts.verdict, relevant);
    showScores(model, state, parts.scores, { scores, relevant, relevantBefore }, update);
    showSteps(model, state, parts.steps, { covering, scores, relevant, changed }, hover, toggle, update);
    showValues(model, state.n, parts.values);
    return changed;
  }

  function toggle(t) {
    if (model.off.has(t)) model.off.delete(t);
    else model.off.add(t);
    const changed = update();
    const names = changed
      .slice(0, 5)
      .map((k) => model.labels.names[k])
      .join(", ");
    announce(
      `Rule ${t} is ${model.off.has(t) ? "off" : "on"}. ` +
        (model.kind === "numbers"
          ? ""
          : changed.length
            ? `The prediction is not that of the whole model: ${names}.`
            : "The prediction is that of the whole model."),
    );
  }

  return {
    node,
    show(row) {
      const n = Math.max(rows.indexOf(row), 0);
      if (n !== state.n) Object.assign(state, { n, label: null, all: false });
      update();
    },
  };
}

const truthOf = (model, n, k) => (model.examples.truth === null ? null : model.examples.truth[n * model.nLabels + k]);

function isWrong(model, n) {
  const relevant = decode(model, addScores(model, findCovering(model, n), new Set()));
  return relevant.some((value, k) => truthOf(model, n, k) !== UNKNOWN && truthOf(model, n, k) !== value);
}

function formatRow(model, n, row) {
  if (model.kind !== "labels" || model.examples.truth === null || model.segments) return String(row);
  const names = model.labels.names.filter((_, k) => truthOf(model, n, k) === 1);
  const text = names.slice(0, 3).join(", ") + (names.length > 3 ? ", …" : "");
  return text ? `${row}: ${text.slice(0, 60)}` : String(row);
}

function describeSample(model) {
  const shown = model.examples.rows.length;
  const all = model.data.examples;
  return shown === all
    ? `all ${formatWhole(all)} examples`
    : `${formatWhole(shown)} of ${formatWhole(all)} examples, drawn at random`;
}

// The label to begin with: the relevant one of the largest score.
function pickLabel(model, n, scores, relevant) {
  const candidates = [...scores.keys()].sort(
    (a, b) => (relevant[b] - relevant[a]) * (model.kind !== "numbers") || scores[b] - scores[a],
  );
  return candidates[0];
}

function showVerdict(model, state, place, relevant) {
  const truth = model.examples.truth && Array.from(relevant, (_, k) => truthOf(model, state.n, k));
  const children = [];
  let hover = () => {};
  if (model.image) {
    const most = model.mostInk;
    const picture = drawPixels(
      model,
      model.examples.columns.map((column) => column[state.n]),
      [],
      most,
    );
    hover = (t) => markPixels(model, picture, t === null ? [] : listConditions(model, t), false);
    const captioned = (drawn, text) => element("figure", {}, drawn, element("figcaption", {}, text));
    children.push(
      element(
        "div",
        { class: "pictures large" },
        captioned(picture, "example"),
        model.segments && captioned(drawPrediction(`Predicted: ${nameSet(model, relevant)}`, relevant), "predicted"),
        model.segments && truth && captioned(drawPrediction(`True: ${nameSet(model, truth)}`, truth), "true"),
      ),
    );
  }
  if (model.kind === "classes") {
    children.push(
      element(
        "p",
        { class: "answer" },
        "Predicted: ",
        element("strong", { id: "predicted-class" }, named(nameClass(model, relevant))),
        truth && [" · true: ", element("strong", {}, named(nameClass(model, truth)))],
      ),
    );
  } else if (model.kind === "labels") {
    const wrong = truth ? truth.filter((value, k) => value !== UNKNOWN && value !== relevant[k]).length : 0;
    children.push(
      element(
        "p",
        { class: "answer" },
        "Predicted: ",
        element("strong", {}, describeSet(model, relevant)),
        truth &&
          element(
            "span",
            { class: "faint" },
            wrong
              ? ` · ${count(wrong, "label")} wrong`
              : ` · all ${truth.includes(UNKNOWN) ? "known " : ""}labels right`,
          ),
      ),
    );
  }
  if (model.decoding.note) children.push(element("p", { class: "faint" }, named(model.decoding.note)));
  place.replaceChildren(...children);
  return hover;
}

const nameSet = (model, relevant) => model.labels.names.filter((_, k) => relevant[k] === 1).join(", ") || "nothing";

function describeSet(model, relevant) {
  const lit = [...relevant.keys()].filter((k) => relevant[k] === 1);
  if (!lit.length) return "no label";
  return [
    ...lit.slice(0, 7).flatMap((k, i) => [i ? ", " : "", nameLabel(model, k)]),
    lit.length > 7 ? ` and ${lit.length - 7} more` : "",
  ];
}

function showValues(model, n, place) {
  if (model.image) return;
  const { categories } = model.features;
  const wasOpen = place.querySelector("details")?.open ?? false;
  const features = model.rankedFeatures.map(({ feature }) => feature);
  const text = (f) => {
    const x = model.examples.columns[f][n];
    return Number.isNaN(x)
      ? element("span", { class: "faint" }, "missing")
      : f in categories
        ? named(nameCategory(model, f, x))
        : exact(x);
  };
  place.replaceChildren(
    element(
      "details",
      { open: wasOpen },
      element("summary", {}, "Values of this example"),
      listPairs(
        features
          .slice(0, SHOWN_VALUES)
          .map((f) => [element("a", { href: `#feature/${f}` }, nameFeature(model, f)), text(f)]),
      ),
      features.length > SHOWN_VALUES &&
        element(
          "p",
          { class: "faint" },
          `The ${SHOWN_VALUES} features of the largest gain, of ${formatWhole(features.length)}.`,
        ),
    ),
  );
}
