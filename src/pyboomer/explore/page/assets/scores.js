// --- The scores of an example, and the steps to one of them ----------------------------------------------------------

const SHOWN_STEPS = 12;
const SHOWN_SCORES = 14;

function showScores(model, state, place, { scores, relevant, relevantBefore }, update) {
  const low = scores.reduce((a, b) => Math.min(a, b), 0);
  const high = scores.reduce((a, b) => Math.max(a, b), 0);
  let labels = [...scores.keys()];
  if (labels.length > SHOWN_SCORES) {
    const matters = (k) =>
      relevant[k] || truthOf(model, state.n, k) === 1 || k === state.label || relevant[k] !== relevantBefore[k] ? 1 : 0;
    labels.sort(
      (a, b) =>
        matters(b) * (model.kind !== "numbers") - matters(a) * (model.kind !== "numbers") ||
        scores[b] - scores[a] ||
        a - b,
    );
  }
  const hidden = labels.length - SHOWN_SCORES;
  if (!state.allScores && hidden > 2) labels = labels.slice(0, SHOWN_SCORES);
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.label : null;
  const list = element(
    "ul",
    { class: `list ${model.kind}` },
    labels.map((k) => {
      const truth = truthOf(model, state.n, k);
      const wrong = model.kind === "labels" && truth !== null && truth !== UNKNOWN && truth !== relevant[k];
      return element(
        "li",
        {},
        button(
          "",
          () => {
            state.label = k;
            state.all = false;
            update();
          },
          { "data-label": k, "aria-pressed": String(k === state.label), class: `score${wrong ? " wrong" : ""}` },
        ),
      );
    }),
  );
  labels.forEach((k, i) =>
    fill(list.children[i].firstChild, [
      model.kind !== "numbers" &&
        element(
          "span",
          { class: "mark", "data-relevant": relevant[k] },
          relevant[k] ? "●" : "○",
          element("span", { class: "visually-hidden" }, relevant[k] ? "predicted: " : "not predicted: "),
        ),
      element("span", { class: "name", title: model.labels.names[k] }, nameLabel(model, k)),
      floatingBar(0, scores[k], low, high),
      model.kind === "numbers" ? exact(scores[k], formatNumber(scores[k]), { class: "number" }) : signed(scores[k]),
      describeTruth(model, truthOf(model, state.n, k), relevant[k]),
    ]),
  );
  const heading = element(
    "h3",
    {},
    model.kind === "numbers" ? "Predictions" : "Scores",
    element("span", { class: "faint" }, model.kind === "numbers" ? "" : " · pick one to see its rules"),
  );
  place.replaceChildren(heading, list);
  if (hidden > 2) {
    place.append(
      button(
        state.allScores ? "Show fewer" : `Show all ${formatWhole(scores.length)}`,
        () => {
          state.allScores = !state.allScores;
          update();
        },
        { class: "quiet" },
      ),
    );
  }
  if (focused !== null) place.querySelector(`[data-label="${focused}"]`)?.focus({ preventScroll: true });
}

function describeTruth(model, truth, relevant) {
  if (truth === null || model.kind === "classes") return null;
  if (model.kind === "numbers")
    return element("span", { class: "truth" }, Number.isNaN(truth) ? "unknown" : `true: ${formatNumber(truth)}`);
  if (truth !== UNKNOWN && truth === relevant) {
    return element(
      "span",
      { class: "truth" },
      element("span", { "aria-hidden": "true" }, "✓"),
      element("span", { class: "visually-hidden" }, "right"),
    );
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
  let sum = 0;
  let low = 0;
  let high = 0;
  const path = shown.map(({ t, score }) => {
    const from = sum;
    if (!model.off.has(t)) sum += score;
    low = Math.min(low, from, from + score);
    high = Math.max(high, from, from + score);
    return [from, from + score];
  });
  [low, high] = [Math.min(low, scores[k]), Math.max(high, scores[k])];
  const focused = place.contains(document.activeElement) ? (document.activeElement.dataset.rule ?? null) : null;
  const items = shown.map(({ t, score }, i) => {
    const off = model.off.has(t);
    const id = `step-${t}`;
    const box = element("input", {
      type: "checkbox",
      id,
      "data-rule": t,
      onchange: () => toggle(t),
      onfocus: () => hover(t),
      onblur: () => hover(null),
    });
    box.checked = !off;
    const text = bodyText(model, t);
    const label = element("label", { for: id, title: text }, element("span", { class: "faint" }, `rule ${t}: `), text);
    return element(
      "li",
      { class: off ? "off" : "", onmouseenter: () => hover(t), onmouseleave: () => hover(null) },
      box,
      label,
      floatingBar(...path[i], low, high, off),
      signed(score),
    );
  });
  if (rest.length) {
    const total = scores[k] - sum;
    items.push(
      element(
        "li",
        { class: "rest" },
        element("span"),
        element("span", { class: "faint" }, `${count(rest.length, "smaller step")} in one`),
        floatingBar(sum, sum + total, low, high),
        signed(total),
      ),
    );
  }
  items.push(
    element(
      "li",
      { class: "sum" },
      element("span"),
      element("span", {}, "score"),
      floatingBar(0, scores[k], low, high),
      exact(scores[k], formatScore(scores[k]), { class: "number", id: "sum" }),
    ),
  );
  place.replaceChildren(
    element("h3", {}, "How “", nameLabel(model, k), `” gets ${formatScore(scores[k])}`),
    element(
      "p",
      { class: "faint" },
      `${formatWhole(covering.length)} of ${count(model.nRules, "rule")} cover this example` +
        (steps.length < covering.length ? `, ${formatWhole(steps.length)} of them with a score for it` : "") +
        `. Switch a rule off to see what it is worth.`,
    ),
    (model.kind !== "numbers" &&
      element(
        "p",
        { class: "changed" },
        changed.length > 0 && [
          "Now predicted: ",
          changed.slice(0, 5).flatMap((j, i) => [i ? ", " : "", relevant[j] ? "" : "not ", nameLabel(model, j)]),
          changed.length > 5 && ` and ${changed.length - 5} more changes`,
        ],
      )) ||
      "",
    element("ol", { class: "waterfall" }, items),
  );
  if (steps.length > SHOWN_STEPS) {
    place.append(
      button(
        state.all ? "Show the largest only" : `Show all ${formatWhole(steps.length)} steps`,
        () => {
          state.all = !state.all;
          update();
        },
        { class: "quiet" },
      ),
    );
  }
  if (focused !== null) place.querySelector(`[data-rule="${focused}"]`)?.focus({ preventScroll: true });
}
