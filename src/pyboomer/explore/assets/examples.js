// --- The view of an example: the rules that cover it, and how they add up to each score ---------------------------------

const SHOWN_STEPS = 12, SHOWN_SCORES = 14, SHOWN_VALUES = 60;

function viewExamples(model) {
  const node = element("section", {}, element("h2", {}, "Examples"));
  if (!model.examples?.rows.length) {
    node.append(element("p", { class: "note" }, "This page has no examples: data are needed. Give them when the page is made, ",
      element("code", {}, "boomer explore model.json --data …"), " or ", element("code", {}, "clf.to_html(X=X, y=y)"), "."));
    return { node, show() {} };
  }
  const state = { n: 0, label: null, all: false, allScores: false };
  const { rows } = model.examples;
  const parts = Object.fromEntries(["chooser", "verdict", "scores", "steps", "values"].map((name) => [name, element("div", { class: name })]));
  node.append(parts.chooser, element("div", { class: "split example" },
    element("div", { class: "side" }, parts.verdict, parts.scores, parts.values), element("div", { class: "content" }, parts.steps)));

  const go = (n) => { location.hash = `example/${rows[Math.min(Math.max(n, 0), rows.length - 1)]}`; };
  const picker = choice("example-pick", "Row", rows.map((row, n) => [n, formatRow(model, n, row)]), (n) => go(Number(n)));
  const previous = button("←", () => go(state.n - 1), { class: "quiet", "aria-label": "Previous example" });
  const next = button("→", () => go(state.n + 1), { class: "quiet", "aria-label": "Next example" });
  const reset = button("Switch all rules on", () => { model.off.clear(); update(); announce("All rules are on."); }, { class: "quiet", id: "all-on" });
  const nextWrong = button("Next mistake", () => {
    const others = [...rows.keys()].map((i) => (state.n + 1 + i) % rows.length);
    const wrong = others.find((n) => isWrong(model, n));
    if (wrong === undefined) announce(nextWrong.textContent = "No mistakes"); else go(wrong);
  }, { class: "quiet", id: "next-mistake" });
  const judged = model.examples.truth !== null && model.kind !== "numbers";
  const offText = element("span", { class: "faint", id: "off-count" });
  fill(parts.chooser, [previous, picker.field, next, judged && nextWrong,
    element("span", { class: "faint" }, describeSample(model)), offText, reset]);

  function update() {
    const covering = findCovering(model, state.n);
    const before = addScores(model, covering, new Set()), scores = addScores(model, covering, model.off);
    const relevant = decode(model, scores), relevantBefore = decode(model, before);
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
    if (model.off.has(t)) model.off.delete(t); else model.off.add(t);
    const changed = update();
    const names = changed.slice(0, 5).map((k) => model.labels.names[k]).join(", ");
    announce(`Rule ${t} is ${model.off.has(t) ? "off" : "on"}. ` + (model.kind === "numbers" ? ""
      : changed.length ? `The prediction is not that of the whole model: ${names}.` : "The prediction is that of the whole model."));
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

const truthOf = (model, n, k) => model.examples.truth === null ? null : model.examples.truth[n * model.nLabels + k];

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
  const shown = model.examples.rows.length, all = model.data.examples;
  return shown === all ? `all ${formatWhole(all)} examples` : `${formatWhole(shown)} of ${formatWhole(all)} examples, drawn at random`;
}

// The label to begin with: the relevant one of the largest score.
function pickLabel(model, n, scores, relevant) {
  const candidates = [...scores.keys()].sort((a, b) => (relevant[b] - relevant[a]) * (model.kind !== "numbers") || scores[b] - scores[a]);
  return candidates[0];
}

function showVerdict(model, state, place, relevant) {
  const truth = model.examples.truth && Array.from(relevant, (_, k) => truthOf(model, state.n, k));
  const children = [];
  let hover = () => {};
  if (model.image) {
    const most = model.mostInk;
    const picture = drawPixels(model, model.examples.columns.map((column) => column[state.n]), [], most);
    hover = (t) => markPixels(model, picture, t === null ? [] : listConditions(model, t), false);
    const captioned = (drawn, text) => element("figure", {}, drawn, element("figcaption", {}, text));
    children.push(element("div", { class: "pictures large" }, captioned(picture, "example"),
      model.segments && captioned(drawPrediction(`Predicted: ${nameSet(model, relevant)}`, relevant), "predicted"),
      model.segments && truth && captioned(drawPrediction(`True: ${nameSet(model, truth)}`, truth), "true")));
  }
  if (model.kind === "classes") {
    children.push(element("p", { class: "answer" }, "Predicted: ", element("strong", { id: "predicted-class" }, named(nameClass(model, relevant))),
      truth && [" · true: ", element("strong", {}, named(nameClass(model, truth)))]));
  } else if (model.kind === "labels") {
    const wrong = truth ? truth.filter((value, k) => value !== UNKNOWN && value !== relevant[k]).length : 0;
    children.push(element("p", { class: "answer" }, "Predicted: ", element("strong", {}, describeSet(model, relevant)),
      truth && element("span", { class: "faint" }, wrong ? ` · ${count(wrong, "label")} wrong`
        : ` · all ${truth.includes(UNKNOWN) ? "known " : ""}labels right`)));
  }
  place.replaceChildren(...children);
  return hover;
}

const nameSet = (model, relevant) => model.labels.names.filter((_, k) => relevant[k] === 1).join(", ") || "nothing";

function describeSet(model, relevant) {
  const lit = [...relevant.keys()].filter((k) => relevant[k] === 1);
  if (!lit.length) return "no label";
  return [...lit.slice(0, 7).flatMap((k, i) => [i ? ", " : "", nameLabel(model, k)]), lit.length > 7 ? ` and ${lit.length - 7} more` : ""];
}

function showScores(model, state, place, { scores, relevant, relevantBefore }, update) {
  const low = scores.reduce((a, b) => Math.min(a, b), 0), high = scores.reduce((a, b) => Math.max(a, b), 0);
  let labels = [...scores.keys()];
  if (labels.length > SHOWN_SCORES) {
    const matters = (k) => (relevant[k] || truthOf(model, state.n, k) === 1 || k === state.label || relevant[k] !== relevantBefore[k]) ? 1 : 0;
    labels.sort((a, b) => matters(b) * (model.kind !== "numbers") - matters(a) * (model.kind !== "numbers") || scores[b] - scores[a] || a - b);
  }
  const hidden = labels.length - SHOWN_SCORES;
  if (!state.allScores && hidden > 2) labels = labels.slice(0, SHOWN_SCORES);
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.label : null;
  const list = element("ul", { class: `list ${model.kind}` }, labels.map((k) => {
    const truth = truthOf(model, state.n, k), wrong = model.kind === "labels" && truth !== null && truth !== UNKNOWN && truth !== relevant[k];
    return element("li", {}, button("", () => { state.label = k; state.all = false; update(); },
      { "data-label": k, "aria-pressed": String(k === state.label), class: `score${wrong ? " wrong" : ""}` }));
  }));
  labels.forEach((k, i) => fill(list.children[i].firstChild, [
    model.kind !== "numbers" && element("span", { class: "mark", "data-relevant": relevant[k] }, relevant[k] ? "●" : "○",
      element("span", { class: "visually-hidden" }, relevant[k] ? "predicted: " : "not predicted: ")),
    element("span", { class: "name", title: model.labels.names[k] }, nameLabel(model, k)),
    floatingBar(0, scores[k], low, high),
    model.kind === "numbers" ? exact(scores[k], formatNumber(scores[k]), { class: "number" }) : signed(scores[k]),
    describeTruth(model, truthOf(model, state.n, k), relevant[k]),
  ]));
  const heading = element("h3", {}, model.kind === "numbers" ? "Predictions" : "Scores",
    element("span", { class: "faint" }, model.kind === "numbers" ? "" : " · pick one to see its rules"));
  place.replaceChildren(heading, list);
  if (hidden > 2) {
    place.append(button(state.allScores ? "Show fewer" : `Show all ${formatWhole(scores.length)}`,
      () => { state.allScores = !state.allScores; update(); }, { class: "quiet" }));
  }
  if (focused !== null) place.querySelector(`[data-label="${focused}"]`)?.focus({ preventScroll: true });
}

function describeTruth(model, truth, relevant) {
  if (truth === null || model.kind === "classes") return null;
  if (model.kind === "numbers") return element("span", { class: "truth" }, Number.isNaN(truth) ? "unknown" : `true: ${formatNumber(truth)}`);
  if (truth !== UNKNOWN && truth === relevant) {
    return element("span", { class: "truth" }, element("span", { "aria-hidden": "true" }, "✓"), element("span", { class: "visually-hidden" }, "right"));
  }
  return element("span", { class: "truth" }, truth === UNKNOWN ? "unknown" : "wrong");
}

// The waterfall: from 0 to the score, rule by rule, the largest steps one by one and the others in one.
function showSteps(model, state, place, { covering, scores, relevant, changed }, hover, toggle, update) {
  const k = state.label;
  const steps = covering.map((t) => ({ t, score: scoreOf(model, t, k) })).filter(({ score }) => score !== 0);
  const isDefault = ({ t }) => t === 0 && countConditions(model, t) === 0;
  steps.sort((a, b) => isDefault(b) - isDefault(a) || Math.abs(b.score) - Math.abs(a.score) || a.t - b.t);
  const shown = state.all ? steps : steps.slice(0, SHOWN_STEPS);
  const rest = steps.slice(shown.length).filter(({ t }) => !model.off.has(t));
  let sum = 0, low = 0, high = 0;
  const path = shown.map(({ t, score }) => {
    const from = sum;
    if (!model.off.has(t)) sum += score;
    low = Math.min(low, from, from + score);
    high = Math.max(high, from, from + score);
    return [from, from + score];
  });
  [low, high] = [Math.min(low, scores[k]), Math.max(high, scores[k])];
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.rule ?? null : null;
  const items = shown.map(({ t, score }, i) => {
    const off = model.off.has(t), id = `step-${t}`;
    const box = element("input", { type: "checkbox", id, "data-rule": t, onchange: () => toggle(t), onfocus: () => hover(t), onblur: () => hover(null) });
    box.checked = !off;
    const text = bodyText(model, t);
    const label = element("label", { for: id, title: text }, element("span", { class: "faint" }, `rule ${t}: `), text);
    return element("li", { class: off ? "off" : "", onmouseenter: () => hover(t), onmouseleave: () => hover(null) },
      box, label, floatingBar(...path[i], low, high, off), signed(score));
  });
  if (rest.length) {
    const total = scores[k] - sum;
    items.push(element("li", { class: "rest" }, element("span"), element("span", { class: "faint" }, `${count(rest.length, "smaller step")} in one`),
      floatingBar(sum, sum + total, low, high), signed(total)));
  }
  items.push(element("li", { class: "sum" }, element("span"), element("span", {}, "score"), floatingBar(0, scores[k], low, high),
    exact(scores[k], formatScore(scores[k]), { class: "number", id: "sum" })));
  place.replaceChildren(
    element("h3", {}, "How “", nameLabel(model, k), `” gets ${formatScore(scores[k])}`),
    element("p", { class: "faint" }, `${formatWhole(covering.length)} of ${count(model.nRules, "rule")} cover this example`
      + (steps.length < covering.length ? `, ${formatWhole(steps.length)} of them with a score for it` : "") + `. Switch a rule off to see what it is worth.`),
    model.kind !== "numbers" && element("p", { class: "changed" }, changed.length > 0 && ["Now predicted: ",
      changed.slice(0, 5).flatMap((j, i) => [i ? ", " : "", relevant[j] ? "" : "not ", nameLabel(model, j)]),
      changed.length > 5 && ` and ${changed.length - 5} more changes`]) || "",
    element("ol", { class: "waterfall" }, items));
  if (steps.length > SHOWN_STEPS) {
    place.append(button(state.all ? "Show the largest only" : `Show all ${formatWhole(steps.length)} steps`,
      () => { state.all = !state.all; update(); }, { class: "quiet" }));
  }
  if (focused !== null) place.querySelector(`[data-rule="${focused}"]`)?.focus({ preventScroll: true });
}

function showValues(model, n, place) {
  if (model.image) return;
  const { categories } = model.features;
  const wasOpen = place.querySelector("details")?.open ?? false;
  const features = model.rankedFeatures.map(({ feature }) => feature);
  const text = (f) => {
    const x = model.examples.columns[f][n];
    return Number.isNaN(x) ? element("span", { class: "faint" }, "missing")
      : f in categories ? named(nameCategory(model, f, x)) : exact(x);
  };
  place.replaceChildren(element("details", { open: wasOpen }, element("summary", {}, "Values of this example"),
    listPairs(features.slice(0, SHOWN_VALUES).map((f) => [element("a", { href: `#feature/${f}` }, nameFeature(model, f)), text(f)])),
    features.length > SHOWN_VALUES && element("p", { class: "faint" }, `The ${SHOWN_VALUES} features of the largest gain, of ${formatWhole(features.length)}.`)));
}
